// robomimic's files (data/demo_k/{actions, rewards, dones, obs/*}) and ACT's (one file per episode:
// action, observations/{qpos, qvel, images/*}).

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "datasets/convert/array_source.h"
#include "datasets/convert/hdf5.h"
#include "datasets/modules/modules.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Hdf5File> Open(const std::string& path) {
  static const auto* functions = static_cast<const Hdf5Functions*>(
      ModuleSymbol("mjpolicy_hdf5", "mjpolicy_hdf5_functions",
                   "; HDF5 files need its library: apt-get install libhdf5-103-1"));
  return functions->open(path);
}

// The number that a name such as "demo_12" ends with, for the order of episodes.
int64_t NumberIn(const std::string& name) {
  const size_t digits = name.find_first_of("0123456789", name.find_last_not_of("0123456789"));
  return digits == std::string::npos || name.size() - digits > 15 ? -1
                                                                  : std::stoll(name.substr(digits));
}

bool ByNumber(const std::string& a, const std::string& b) {
  const int64_t left = NumberIn(a), right = NumberIn(b);
  return left != right ? left < right : a < b;
}

class Hdf5Source final : public ArraySource {
 public:
  explicit Hdf5Source(const std::string& path) {
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::directory_iterator(path)) {
        const std::string extension = entry.path().extension();
        if (extension == ".hdf5" || extension == ".h5") files_.push_back(entry.path().string());
      }
      std::sort(files_.begin(), files_.end(), [](const std::string& a, const std::string& b) {
        return ByNumber(fs::path(a).stem(), fs::path(b).stem());
      });
    } else {
      files_ = {path};
    }
    Hdf5File& file = File(0);
    robomimic_ = file.Has("data");
    if (!robomimic_ && !(file.Has("action") && file.Has("observations"))) {
      throw Unsupported(files_[0] +
                        ": has neither robomimic's \"data\" nor ACT's \"action\" and "
                        "\"observations\"");
    }
    if (robomimic_ && files_.size() > 1) {
      throw Unsupported(path +
                        ": has several robomimic files; convert each into a folder of its own, "
                        "with its --task");
    }
    if (robomimic_) {
      for (const std::string& demo : file.Children("data")) demos_.push_back("data/" + demo + "/");
      std::sort(demos_.begin(), demos_.end(), [](const std::string& a, const std::string& b) {
        return ByNumber(a.substr(0, a.size() - 1), b.substr(0, b.size() - 1));
      });
      if (demos_.empty()) throw BadInput(files_[0] + ": data: has no episode");
      for (const char* name : {"actions", "rewards", "dones"}) AddArray(name);
      AddArrays("obs");
    } else {
      AddArray("action");
      AddArrays("observations");
      if (file.Has("observations/images")) AddArrays("observations/images");
    }
    CheckLengths();
  }

  const char* layout() const override { return robomimic_ ? "robomimic" : "ACT"; }
  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  int64_t episodes() const override {
    return static_cast<int64_t>(robomimic_ ? demos_.size() : files_.size());
  }
  int64_t Length(int64_t episode) override {
    return File(episode).Shape(Prefix(episode) + arrays_[0].name)[0];
  }
  std::vector<double> Read(int64_t episode, const SourceArray& array, int64_t first,
                           int64_t count) override {
    Hdf5File& file = File(episode);
    const std::string path = Prefix(episode) + array.name;
    std::vector<int64_t> shape = file.Shape(path);
    const int64_t rows = shape[0];
    shape.erase(shape.begin());
    if (shape != array.shape || rows != Length(episode)) {
      throw BadInput(FilePath(episode) + ": " + path +
                     ": has another shape than in the first episode, or another number of rows "
                     "than the actions");
    }
    return file.Read(path, first, count);
  }
  std::vector<std::string> DefaultState() const override {
    std::vector<std::string> state;
    for (const char* name : {"qpos", "robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos"}) {
      for (const SourceArray& array : arrays_) {
        if (array.name.ends_with(std::string("/") + name)) state.emplace_back(name);
      }
    }
    return state;
  }

 private:
  std::string Prefix(int64_t episode) const {
    return robomimic_ ? demos_.at(static_cast<size_t>(episode)) : "";
  }
  const std::string& FilePath(int64_t episode) const {
    return files_.at(robomimic_ ? 0 : static_cast<size_t>(episode));
  }
  // Throws Error for an episode without frames: the data set would not have it, and those after it
  // would have other numbers than here.
  void CheckLengths() {
    if (arrays_.empty()) throw BadInput(files_[0] + ": " + Prefix(0) + ": has no arrays");
    for (int64_t episode = 0; episode < episodes(); ++episode) {
      if (Length(episode) > 0) continue;
      throw BadInput(FilePath(episode) + ": " + Prefix(episode) + arrays_[0].name +
                     ": has no frames; convert a copy without this episode");
    }
  }
  Hdf5File& File(int64_t episode) {
    const size_t index = robomimic_ ? 0 : static_cast<size_t>(episode);
    if (file_ == nullptr || index != open_) {
      file_ = Open(files_.at(index));
      open_ = index;
    }
    return *file_;
  }
  void AddArrays(const std::string& group) {
    for (const std::string& name : File(0).Children(Prefix(0) + group)) {
      AddArray(group + "/" + name);
    }
  }
  // Adds an array of the first episode, if it is one.
  void AddArray(const std::string& name) {
    Hdf5File& file = File(0);
    const std::string path = Prefix(0) + name;
    if (!file.Has(path) || !file.IsArray(path)) return;
    std::vector<int64_t> shape = file.Shape(path);
    shape.erase(shape.begin());
    if (name.find("images/") != std::string::npos && shape.size() == 1) {
      throw Unsupported(files_[0] + ": " + path + ": pictures are JPEG files, which are not read");
    }
    arrays_.push_back({name, shape, file.Dtype(path)});
  }

  std::vector<std::string> files_;
  bool robomimic_ = false;
  std::vector<std::string> demos_;
  std::vector<SourceArray> arrays_;
  std::unique_ptr<Hdf5File> file_;
  size_t open_ = 0;
};

}  // namespace

std::unique_ptr<ArraySource> OpenHdf5(const std::string& path) {
  return std::make_unique<Hdf5Source>(path);
}

}  // namespace mjp::datasets
