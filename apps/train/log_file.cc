#include "apps/train/log_file.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>

#include "base/folders.h"
#include "base/json.h"

namespace mjp::app {
namespace {

constexpr size_t kLargestLog = size_t{1} << 30;

// The step of a line; more than any of a line that is none.
int64_t StepOfJson(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool whole = json.is_object() && json.contains("step") && json["step"].is_number_integer();
  return whole ? json["step"].get<int64_t>() : INT64_MAX;
}
int64_t StepOfCsv(const std::string& line, const std::string& header) {
  const auto commas = [](const std::string& text) { return std::ranges::count(text, ','); };
  const bool whole = !line.empty() && line[0] >= '0' && line[0] <= '9';
  return whole && commas(line) == commas(header) ? std::atoll(line.c_str()) : INT64_MAX;
}

// The lines of `text` up to a step, behind the header. Its end is no line unless it is ended.
std::string Kept(const std::string& text, int64_t step, const std::string& header) {
  std::string kept = header.empty() ? "" : header + "\n";
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    const int64_t of = header.empty() ? StepOfJson(line) : StepOfCsv(line, header);
    if (of <= step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

LogFile::LogFile(const std::string& path, int64_t step, const std::string& header) : path_(path) {
  const std::string text = std::filesystem::exists(path) ? ReadFile(path, kLargestLog) : "";
  WriteFileAtomically(path, Kept(text, step, header));
  file_ = mjp::FileDescriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file_.get() < 0) throw mjp::FileError("cannot open", path);
}

void LogFile::Add(const std::string& line) { WriteDurably(file_.get(), line + "\n", path_); }

}  // namespace mjp::app
