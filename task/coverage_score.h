#ifndef TASK_COVERAGE_SCORE_H_
#define TASK_COVERAGE_SCORE_H_

namespace pusht {

// Makes the plugin show "coverage", the share of the goal that the block covers, in models of
// Push-T.
void RegisterCoverageScore();

}  // namespace pusht

#endif  // TASK_COVERAGE_SCORE_H_
