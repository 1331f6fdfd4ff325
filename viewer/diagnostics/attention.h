#ifndef VIEWER_DIAGNOSTICS_ATTENTION_H_
#define VIEWER_DIAGNOSTICS_ATTENTION_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "policy/policy.h"
#include "viewer/snapshot.h"

namespace mjp::app {

// Where the actions of a decision look, by `policy`, which runs on the CPU: the decision is made
// once more, and in it no attention is anybody's but the network's own. Says in `error` why not.
Attention FindAttention(mjp::Policy& policy, std::shared_ptr<const DecisionRecord> decision);

// The same beside the simulation, on a thread and with a policy of its own, whatever the decision
// was taken on: decisions keep their bits and their time.
class AttentionFinder {
 public:
  AttentionFinder();
  ~AttentionFinder();
  AttentionFinder(const AttentionFinder&) = delete;
  AttentionFinder& operator=(const AttentionFinder&) = delete;

  // Asks for a decision of `checkpoint`, in the place of one that is not begun. Nothing where it
  // was the last one asked for.
  void Ask(std::shared_ptr<const DecisionRecord> decision,
           std::shared_ptr<const mjp::Checkpoint> checkpoint);
  // The last one that was found, or null.
  std::shared_ptr<const Attention> Found() const;
  // Waits for what was asked for.
  void Wait();

 private:
  struct Question {
    std::shared_ptr<const DecisionRecord> decision;  // null: none
    std::shared_ptr<const mjp::Checkpoint> checkpoint;
  };

  void Run();
  std::shared_ptr<const Attention> Answer(const Question& question);

  mutable std::mutex mutex_;
  std::condition_variable wake_, answered_;
  bool stop_ = false, busy_ = false;
  Question open_, last_;
  std::shared_ptr<const Attention> found_;
  std::unique_ptr<mjp::Policy> policy_;  // the thread's
  std::shared_ptr<const mjp::Checkpoint> of_;
  std::thread thread_;
};

}  // namespace mjp::app

#endif  // VIEWER_DIAGNOSTICS_ATTENTION_H_
