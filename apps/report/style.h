#ifndef APPS_REPORT_STYLE_H_
#define APPS_REPORT_STYLE_H_

namespace mjp::app {

// The report's style sheet: light and dark as the reader's system is, from a phone's width on.
extern const char* const kReportStyle;

// What the page does when it is clicked: filters of episodes, one video at a time.
extern const char* const kReportScript;

}  // namespace mjp::app

#endif  // APPS_REPORT_STYLE_H_
