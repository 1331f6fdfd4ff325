#ifndef APPS_REPORT_HTML_H_
#define APPS_REPORT_HTML_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mjp::app {

// Text as HTML shows it, in elements and in quoted attributes.
std::string Escaped(const std::string& text);

// A number with so many decimals, with a point in every locale.
std::string Fixed(double value, int decimals);

// A probability with four decimals; "< 0.0001" of one that is smaller.
std::string Probability(double value);

// The bytes in base64.
std::string Base64(std::span<const uint8_t> bytes);

// A table. Cells are HTML already; the first column is text, the others are numbers.
std::string TableHtml(const std::vector<std::string>& header,
                      const std::vector<std::vector<std::string>>& rows);

// A section of the page with its anchor.
std::string SectionHtml(const std::string& id, const std::string& title, const std::string& note,
                        const std::string& body);

struct NavigationEntry {
  std::string id, title;
};

// The whole page: title, style and script inside it, nothing from elsewhere.
std::string PageHtml(const std::string& title, const std::string& subtitle,
                     const std::vector<NavigationEntry>& navigation, const std::string& body);

}  // namespace mjp::app

#endif  // APPS_REPORT_HTML_H_
