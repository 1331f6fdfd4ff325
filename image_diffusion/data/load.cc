#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/program/memory.h"
#include "base/sha256.h"
#include "image_diffusion/data/pictures.h"

namespace mjp {
namespace {

const std::vector<std::string> kDigitNames = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// `name` in `directory`, or the same with ".gz". Throws Error with `advice` if neither is there.
std::string FindFile(const std::string& directory, const std::string& name,
                     const std::string& advice) {
  for (const char* suffix : {"", ".gz"}) {
    std::string path = directory + "/" + name + suffix;
    // a link to nothing is there, and opening it says what it is
    std::error_code error;
    const auto type = std::filesystem::symlink_status(path, error).type();
    if (type == std::filesystem::file_type::not_found) continue;
    if (type != std::filesystem::file_type::none) return path;
    throw BadInput(path + ": cannot look at the file: " + error.message() + "; " + advice);
  }
  throw BadInput((directory.empty() ? "--data" : directory) + ": " + name + " is not there; " +
                 advice);
}

// Files that were reserved on a disk and not filled end in zeros.
void CheckFilled(const PictureSet& set, const std::string& origin) {
  const auto bytes = static_cast<size_t>(2 * set.PictureBytes());
  if (set.pixels.size() < bytes) return;
  if (std::any_of(set.pixels.end() - static_cast<ptrdiff_t>(bytes), set.pixels.end(),
                  [](uint8_t value) { return value != 0; })) {
    return;
  }
  throw BadInput(origin +
                 ": its last pictures are blank: the file was not filled; download it "
                 "again");
}

std::vector<int> ReadShape(ByteStream& bytes, size_t axes) {
  std::vector<int> shape = ReadIdxShape(bytes);
  if (shape.size() == axes) return shape;
  throw BadInput(bytes.origin() + ": has " + std::to_string(shape.size()) + " axes, expected " +
                 std::to_string(axes) + "; is it the file of that name?");
}

// The labels of `count` pictures.
std::vector<uint8_t> ReadLabels(ByteStream& bytes, int count, size_t classes,
                                const std::string& advice) {
  const std::vector<int> shape = ReadShape(bytes, 1);
  if (shape[0] != count) {
    throw BadInput(bytes.origin() + ": " + std::to_string(count) + " pictures and " +
                   std::to_string(shape[0]) + " labels: not of one data set; " + advice);
  }
  std::vector<uint8_t> labels(count);
  bytes.Read(labels);
  bytes.CheckEnd();
  for (int i = 0; i < count; ++i) {
    if (labels[i] < classes) continue;
    throw BadInput(bytes.origin() + ": label " + std::to_string(i) + " is " +
                   std::to_string(labels[i]) + " of " + std::to_string(classes) + " classes; " +
                   advice);
  }
  return labels;
}

PictureSet LoadMnist(const PictureOptions& options, const std::string& source,
                     const std::vector<std::string>& classes) {
  const std::string advice =
      "put train-images-idx3-ubyte and train-labels-idx1-ubyte (.gz or not) of " + source +
      " into one folder and name it with --data";
  ByteStream images(FindFile(options.directory, "train-images-idx3-ubyte", advice));
  ByteStream labels(FindFile(options.directory, "train-labels-idx1-ubyte", advice));
  const std::vector<int> shape = ReadShape(images, 3);
  const int count = shape[0], height = shape[1], width = shape[2];
  if (height > kMaxEdge || width > kMaxEdge) {
    throw BadInput(images.origin() + ": pictures of " + std::to_string(height) + "x" +
                   std::to_string(width) + " pixels, of which " + std::to_string(kMaxEdge) +
                   " are read; " + advice);
  }
  PictureSet set{.size = options.size, .channels = options.channels, .classes = classes};
  CheckRoom(count, set, images.origin());
  const std::vector<uint8_t> of_class = ReadLabels(labels, count, classes.size(), advice);
  std::vector<uint8_t> picture(static_cast<size_t>(height) * width);
  for (int i = 0; i < count; ++i) {
    images.Read(picture);
    set.Add(FitPicture(picture.data(), height, width, 1, set.size, set.channels), of_class[i]);
  }
  images.CheckEnd();
  CheckFilled(set, images.origin());
  return set;
}

std::string CifarBatch(const std::string& directory, int batch) {
  return FindFile(directory, "data_batch_" + std::to_string(batch) + ".bin",
                  "unpack cifar-10-binary.tar.gz (www.cs.toronto.edu/~kriz/cifar.html) and name "
                  "its folder cifar-10-batches-bin with --data");
}

PictureSet LoadCifar10(const PictureOptions& options) {
  constexpr int kBatches = 5, kRecords = 10000;
  PictureSet set{.size = options.size,
                 .channels = options.channels,
                 .classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog",
                             "horse", "ship", "truck"}};
  CheckRoom(kBatches * kRecords, set, options.directory);
  const ptrdiff_t bytes = kRecords * set.PictureBytes();
  for (int i = 1; i <= kBatches; ++i) {
    ByteStream batch(CifarBatch(options.directory, i));
    ReadCifar10(batch, kRecords, set);
    CheckFilled(set, batch.origin());
    const auto begin = set.pixels.begin();
    for (int before = 1; before < i; ++before) {
      if (!std::equal(begin + (before - 1) * bytes, begin + before * bytes,
                      begin + (i - 1) * bytes)) {
        continue;
      }
      throw BadInput(batch.origin() + ": is the same as data_batch_" + std::to_string(before) +
                     ".bin; unpack the archive again");
    }
  }
  return set;
}

PictureSet Load(const PictureOptions& options) {
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
  if (options.dataset == "digits") return DrawDigits(options);
  std::string known;
  for (const std::string& name : DatasetNames()) known += " " + name;
  throw Error(ExitCode::kUsage, "--dataset " + options.dataset + ": there are" + known);
}

}  // namespace

std::vector<std::string> DatasetNames() {
  return {"mnist", "fashion_mnist", "cifar10", "folder", "digits"};
}

void CheckRoom(int64_t count, const PictureSet& set, const std::string& origin) {
  constexpr double kCopies = 2, kGiB = 1 << 30;
  const double needed = kCopies * static_cast<double>(count) * set.PictureBytes();
  if (needed <= PhysicalMemory()) return;
  const std::string edge = std::to_string(set.size);
  throw EnvironmentError(origin + ": " + std::to_string(count) + " pictures of " + edge + "x" +
                         edge + "x" + std::to_string(set.channels) + " need " +
                         std::to_string(static_cast<int64_t>(needed / kGiB)) +
                         " GiB, more than this machine has; choose a smaller --image-size, or "
                         "fewer pictures");
}

PictureSet LoadPictures(const PictureOptions& options) {
  if (options.dataset == "digits" && !options.directory.empty()) {
    throw Error(ExitCode::kUsage, "--data: digits are drawn, there are no files to read");
  }
  PictureSet set = Load(options);
  std::vector<bool> found(set.classes.size());
  for (const uint8_t label : set.labels) found[label] = true;
  const auto missing = std::find(found.begin(), found.end(), false) - found.begin();
  if (options.dataset == "digits" || missing == static_cast<ptrdiff_t>(found.size())) return set;
  throw BadInput(options.directory + ": has no picture of class " + set.classes[missing] +
                 ", and none can be learned; use the whole data set");
}

std::string PicturesHash(const PictureSet& pictures) {
  const auto hash = [](const auto& bytes) {
    return Sha256({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  };
  std::string parts = hash(pictures.pixels) + hash(pictures.labels);
  for (const std::string& name : pictures.classes) parts += hash(name);
  return hash(parts);
}

}  // namespace mjp
