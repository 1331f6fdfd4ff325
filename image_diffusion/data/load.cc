#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "image_diffusion/data/pictures.h"

namespace mjp {
namespace {

constexpr uint64_t kFileLimit = uint64_t{1} << 30;
const std::vector<std::string> kDigitNames = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// `name` in `directory`, or the same with ".gz". Throws Error with `advice` if neither is there.
std::string FindFile(const std::string& directory, const std::string& name,
                     const std::string& advice) {
  for (const char* suffix : {"", ".gz"}) {
    std::string path = directory + "/" + name + suffix;
    if (std::filesystem::exists(path)) return path;
  }
  throw BadInput((directory.empty() ? "--data" : directory) + ": " + name + " is not there; " +
                 advice);
}

IdxFile ReadIdx(const std::string& directory, const std::string& name, size_t axes,
                const std::string& advice) {
  const std::string path = FindFile(directory, name, advice);
  IdxFile file = ParseIdx(ReadFile(path, kFileLimit), path);
  if (file.shape.size() == axes) return file;
  throw BadInput(path + ": has " + std::to_string(file.shape.size()) + " axes, expected " +
                 std::to_string(axes) + "; is it the file of that name?");
}

PictureSet LoadMnist(const PictureOptions& options, const std::string& source,
                     const std::vector<std::string>& classes) {
  const std::string advice =
      "put train-images-idx3-ubyte and train-labels-idx1-ubyte (.gz or not) of " + source +
      " into one folder and name it with --data";
  const IdxFile images = ReadIdx(options.directory, "train-images-idx3-ubyte", 3, advice);
  const IdxFile labels = ReadIdx(options.directory, "train-labels-idx1-ubyte", 1, advice);
  if (images.shape[0] != labels.shape[0]) {
    throw BadInput(options.directory + ": " + std::to_string(images.shape[0]) + " pictures and " +
                   std::to_string(labels.shape[0]) + " labels: not of one data set; " + advice);
  }
  PictureSet set{.size = options.size, .channels = options.channels, .classes = classes};
  set.labels = labels.data;
  const int height = images.shape[1], width = images.shape[2];
  for (int i = 0; i < images.shape[0]; ++i) {
    if (set.labels[i] >= classes.size()) {
      throw BadInput(options.directory + ": label " + std::to_string(i) + " is " +
                     std::to_string(set.labels[i]) + " of " + std::to_string(classes.size()) +
                     " classes; " + advice);
    }
    const std::vector<uint8_t> fitted = FitPicture(images.data.data() + int64_t{i} * height * width,
                                                   height, width, 1, set.size, set.channels);
    set.pixels.insert(set.pixels.end(), fitted.begin(), fitted.end());
  }
  return set;
}

PictureSet LoadCifar10(const PictureOptions& options) {
  PictureSet set{.size = options.size,
                 .channels = options.channels,
                 .classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog",
                             "horse", "ship", "truck"}};
  for (int i = 1; i <= 5; ++i) {
    const std::string path =
        FindFile(options.directory, "data_batch_" + std::to_string(i) + ".bin",
                 "unpack cifar-10-binary.tar.gz (www.cs.toronto.edu/~kriz/cifar.html) and name its "
                 "folder cifar-10-batches-bin with --data");
    ParseCifar10(ReadFile(path, kFileLimit), path, set);
  }
  return set;
}

}  // namespace

std::vector<std::string> DatasetNames() {
  return {"mnist", "fashion_mnist", "cifar10", "folder", "digits"};
}

PictureSet LoadPictures(const PictureOptions& options) {
  const bool drawn = options.dataset == "digits";
  if (drawn && !options.directory.empty()) {
    throw Error(ExitCode::kUsage, "--data: digits are drawn, there are no files to read");
  }
  if (options.dataset == "mnist") {
    return LoadMnist(options, "MNIST (yann.lecun.com/exdb/mnist)", kDigitNames);
  }
  if (options.dataset == "fashion_mnist") {
    return LoadMnist(options, "Fashion-MNIST (github.com/zalandoresearch/fashion-mnist)",
                     {"t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt",
                      "sneaker", "bag", "boot"});
  }
  if (options.dataset == "cifar10") return LoadCifar10(options);
  if (options.dataset == "folder") return LoadFolder(options);
  if (drawn) return DrawDigits(options);
  std::string known;
  for (const std::string& name : DatasetNames()) known += " " + name;
  throw Error(ExitCode::kUsage, "--dataset " + options.dataset + ": there are" + known);
}

}  // namespace mjp
