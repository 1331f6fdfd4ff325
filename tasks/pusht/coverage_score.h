#ifndef TASKS_PUSHT_COVERAGE_SCORE_H_
#define TASKS_PUSHT_COVERAGE_SCORE_H_

namespace mjp::app {

// Makes the plugin show "coverage", the share of the goal that the block covers, in models of
// Push-T.
void RegisterCoverageScore();

}  // namespace mjp::app

#endif  // TASKS_PUSHT_COVERAGE_SCORE_H_
