#include "apps/report/html.h"

#include <cmath>

#include "apps/report/style.h"
#include "base/text_stream.h"

namespace mjp::app {

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Fixed(double value, int decimals) {
  mjp::TextWriter out;
  out << std::fixed;
  out.precision(decimals);
  out << value;
  return out.str();
}

std::string Probability(double value) {
  constexpr int kDecimals = 4;
  constexpr double kLeast = 1e-4;
  return value < kLeast ? "< " + Fixed(kLeast, kDecimals) : Fixed(value, kDecimals);
}

std::string Base64(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = bytes.size() - i;
    const uint32_t three = static_cast<uint32_t>(bytes[i]) << 16 |
                           (left > 1 ? static_cast<uint32_t>(bytes[i + 1]) << 8 : 0) |
                           (left > 2 ? bytes[i + 2] : 0);
    out += kDigits[three >> 18];
    out += kDigits[three >> 12 & 63];
    out += left > 1 ? kDigits[three >> 6 & 63] : '=';
    out += left > 2 ? kDigits[three & 63] : '=';
  }
  return out;
}

std::string TableHtml(const std::vector<std::string>& header,
                      const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : header) html += "<th>" + cell + "</th>";
  html += "</tr></thead><tbody>";
  for (const auto& row : rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + cell + "</td>";
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

std::string SectionHtml(const std::string& id, const std::string& title, const std::string& note,
                        const std::string& body) {
  return "<section id=\"" + id + "\"><h2>" + Escaped(title) + "</h2>" +
         (note.empty() ? "" : "<p class=\"note\">" + note + "</p>") + body + "</section>\n";
}

std::string PageHtml(const std::string& title, const std::string& subtitle,
                     const std::vector<NavigationEntry>& navigation, const std::string& body) {
  std::string links;
  for (const NavigationEntry& entry : navigation)
    links += "<a href=\"#" + entry.id + "\">" + Escaped(entry.title) + "</a>";
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>" +
         Escaped(title) + "</title><style>" + kReportStyle +
         "</style></head><body><header><div><h1>" + Escaped(title) + "</h1><p>" + subtitle +
         "</p></div></header><nav aria-label=\"Sections\">" + links + "</nav><main>\n" + body +
         "</main><script>" + kReportScript + "</script></body></html>\n";
}

}  // namespace mjp::app
