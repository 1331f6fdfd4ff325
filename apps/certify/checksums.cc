#include "apps/certify/checksums.h"

#include <vector>

#include "base/sha256.h"

namespace mjp::app {
namespace {

constexpr char kFields[] = "fields", kWhole[] = "checksum";

std::string HashOf(const std::string& text) {
  return mjp::Sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// `certificate` without the members `names`.
Json Without(Json certificate, const std::vector<std::string>& names) {
  for (const std::string& name : names) certificate.erase(name);
  return certificate;
}

std::map<std::string, std::string> FieldsOf(const Json& certificate) {
  std::map<std::string, std::string> fields;
  for (const auto& [place, value] : LeavesOf(Without(certificate, {kFields, kWhole})))
    fields[place] = HashOf(place + "=" + value.dump()).substr(0, 8);
  return fields;
}

std::string WholeOf(const Json& certificate) {
  return HashOf(nlohmann::json(Without(certificate, {kWhole})).dump());
}

}  // namespace

std::map<std::string, nlohmann::json> LeavesOf(const Json& json) {
  std::map<std::string, nlohmann::json> leaves;
  const nlohmann::json flat = nlohmann::json(json).flatten();
  for (const auto& [pointer, value] : flat.items())
    leaves[pointer.empty() ? pointer : pointer.substr(1)] = value;
  return leaves;
}

void AddChecksums(Json& certificate) {
  certificate = Json::parse(JsonText(Without(certificate, {kFields, kWhole})));
  certificate[kFields] = FieldsOf(certificate);
  certificate[kWhole] = WholeOf(certificate);
}

std::vector<Comparison> CompareChecksums(const Json& certificate) {
  std::vector<Comparison> lines;
  const std::map<std::string, std::string> now = FieldsOf(certificate);
  const Json fields = certificate.value(kFields, Json());
  for (const auto& [place, hash] : now) {
    const bool known = fields.is_object() && fields.contains(place);
    if (known && fields[place] == hash) continue;
    lines.push_back({place, Verdict::kDiffers,
                     known ? "edited: its checksum is " + hash + ", and " + fields[place].dump() +
                                 " was written"
                           : "has no checksum"});
  }
  if (fields.is_object()) {
    for (const auto& [place, hash] : fields.items())
      if (!now.contains(place)) lines.push_back({place, Verdict::kDiffers, "is missing"});
  }
  const std::string whole = WholeOf(certificate);
  const bool equal = certificate.value(kWhole, Json()) == whole;
  lines.push_back({kWhole, equal ? Verdict::kEqual : Verdict::kDiffers,
                   equal ? whole : "the file was edited: it is " + whole});
  return lines;
}

}  // namespace mjp::app
