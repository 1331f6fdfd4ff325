#ifndef POLICY_DIT_CLIP_FILES_H_
#define POLICY_DIT_CLIP_FILES_H_

#include <memory>
#include <string>

#include "policy/checkpoint/checkpoint_files.h"
#include "policy/dit/dit_config.h"
#include "policy/dit/tokenizer.h"

// What a multi_task_dit needs of the CLIP model that its config.json names and its own files do not
// hold: the head counts and the tokenizer. They stand in the checkpoint's folder, under the model's
// name, its last part, or (the tokenizer) directly.

namespace mjp {

// Sets heads, activation and epsilon of config.clip from CLIP's own config.json. Without that file
// OpenAI's models have heads of 64. Throws Error that says which file to put where for any other.
void ReadClipConfig(CheckpointFiles& files, DitConfig& config);

// From vocab.json and merges.txt; null where they are absent, and `lack` then says what to do.
std::shared_ptr<const Tokenizer> ReadTokenizer(CheckpointFiles& files, const DitConfig& config,
                                               std::string& lack);

}  // namespace mjp

#endif  // POLICY_DIT_CLIP_FILES_H_
