#ifndef APPS_REPORT_SECTIONS_H_
#define APPS_REPORT_SECTIONS_H_

#include <string>
#include <vector>

#include "apps/report/evaluation_files.h"

namespace mjp::app {

// The parts of a report, as HTML. Each takes all evaluations, in the order of their colours.
std::string TilesHtml(const std::vector<EvaluationFiles>& all);
std::string SuccessSection(const std::vector<EvaluationFiles>& all);
std::string CurvesSection(const std::vector<EvaluationFiles>& all);
// Each of the others against the first, on the seeds both have.
std::string ComparisonSection(const std::vector<EvaluationFiles>& all);
std::string DisturbanceSection(const std::vector<EvaluationFiles>& all);
// Of `profile` where one is given, else of the evaluations themselves; empty where none has times.
std::string TimeSection(const std::vector<EvaluationFiles>& all,
                        const std::vector<StageTime>& profile);
// Empty where no evaluation has one.
std::string CertificateSection(const std::vector<EvaluationFiles>& all);
// What was run: checkpoint, sampler, versions.
std::string RunSection(const std::vector<EvaluationFiles>& all);

}  // namespace mjp::app

#endif  // APPS_REPORT_SECTIONS_H_
