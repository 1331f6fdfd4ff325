#include "policy/dit/clip_files.h"

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/key_reader.h"

namespace mjp {
namespace {

constexpr char kOpenAi[] = "openai/clip-vit-";
constexpr size_t kMostBytes = size_t{16} << 20;  // of vocab.json or merges.txt

// Folders within a checkpoint where the files of model `name` may be, most exact first. Throws
// Error for a name that leads out of the checkpoint.
std::vector<std::string> Folders(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  if (name.empty() || name[0] == '/' || last.empty() || name.find("..") != std::string::npos) {
    throw BadInput("config.json: \"" + name +
                   "\" is no name of a CLIP model; one such as openai/clip-vit-base-patch16 is");
  }
  if (last == name) return {name + "/"};
  return {name + "/", last + "/"};
}

std::optional<std::string> FolderWith(const CheckpointFiles& files, const std::string& name,
                                      const char* file) {
  for (const std::string& folder : Folders(name)) {
    if (files.Has(folder + file)) return folder;
  }
  return std::nullopt;
}

TokenActivation ActivationIn(KeyReader& keys) {
  return keys.Choice<TokenActivation>("hidden_act",
                                      {{"quick_gelu", TokenActivation::kQuickGelu},
                                       {"gelu", TokenActivation::kGeluErf},
                                       {"gelu_new", TokenActivation::kGeluTanh},
                                       {"gelu_pytorch_tanh", TokenActivation::kGeluTanh},
                                       {"silu", TokenActivation::kSilu}},
                                      "quick_gelu");
}

// One tower of CLIP's config.json. Defaults are the library's; the shapes of the tensors say the
// rest, and keys of other uses stand in the file too.
void ReadTower(CheckpointFiles& files, const std::string& name, const char* member, int heads,
               ClipTower& tower) {
  const std::optional<std::string> folder = FolderWith(files, name, "config.json");
  tower.heads = 0;
  if (!folder) {
    if (name.starts_with(kOpenAi)) return;
    throw BadInput(files.directory() + ": nothing says how many heads the CLIP model \"" + name +
                   "\" has; put its config.json into " + files.PathOf(Folders(name)[0]));
  }
  const std::string file = *folder + "config.json";
  const Json json = files.ReadJson(file);
  const std::string path = files.PathOf(file);
  KeyReader keys(json, path);
  KeyReader part(keys.Required(member), path + ": \"" + member + "\"");
  tower.heads = part.Int("num_attention_heads", 1, 1024, heads);
  tower.activation = ActivationIn(part);
  tower.epsilon = static_cast<float>(part.Number("layer_norm_eps", 1e-12, 1, 1e-5));
}

}  // namespace

void ReadClipConfig(CheckpointFiles& files, DitConfig& config) {
  ReadTower(files, config.text_name, "text_config", 8, config.clip.text);
  if (!config.cameras.empty()) {
    ReadTower(files, config.vision_name, "vision_config", 12, config.clip.vision);
  }
}

std::shared_ptr<const Tokenizer> ReadTokenizer(CheckpointFiles& files, const DitConfig& config,
                                               std::string& lack) {
  std::optional<std::string> folder = FolderWith(files, config.text_name, "vocab.json");
  if (!folder && files.Has("vocab.json")) folder = "";
  if (!folder || !files.Has(*folder + "merges.txt")) {
    lack = files.directory() + ": has no tokenizer; put vocab.json and merges.txt of " +
           config.text_name + " into " + files.PathOf(Folders(config.text_name)[0]);
    return nullptr;
  }
  JsonLimits limits;
  limits.bytes = kMostBytes;
  const Json vocabulary = files.ReadJson(*folder + "vocab.json", limits);
  const std::string merges = files.ReadText(*folder + "merges.txt", kMostBytes);
  return std::make_shared<Tokenizer>(vocabulary, merges, files.PathOf(*folder));
}

}  // namespace mjp
