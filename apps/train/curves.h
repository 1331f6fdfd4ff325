#ifndef APPS_TRAIN_CURVES_H_
#define APPS_TRAIN_CURVES_H_

#include <string>

namespace mjp::app {

// Draws what a run's log says over the seconds of training, as a PNG picture of three panels:
// losses (logarithmic), success of the rounds with its 95 % interval, median steps to success. Of
// lines for the same step the last one counts. Throws Error if a file cannot be read or written.
void DrawCurves(const std::string& log, const std::string& picture);

}  // namespace mjp::app

#endif  // APPS_TRAIN_CURVES_H_
