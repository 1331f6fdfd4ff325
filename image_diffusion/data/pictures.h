#ifndef IMAGE_DIFFUSION_DATA_PICTURES_H_
#define IMAGE_DIFFUSION_DATA_PICTURES_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "image_diffusion/data/byte_stream.h"

// Data sets of small labelled pictures, all in memory.

namespace mjp {

struct PictureSet {
  int size = 0, channels = 0;             // pixels both ways; 1: grey, 3: RGB
  std::vector<uint8_t> pixels = {};       // (count, size, size, channels)
  std::vector<uint8_t> labels = {};       // (count): index into classes
  std::vector<std::string> classes = {};  // names

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  int64_t PictureBytes() const { return int64_t{size} * size * channels; }
  // Appends a picture (size, size, channels) of class `label`.
  void Add(std::span<const uint8_t> picture, uint8_t label) {
    pixels.insert(pixels.end(), picture.begin(), picture.end());
    labels.push_back(label);
  }
};

// Random numbers of one drawn picture, a function of the data set's seed and the picture's index.
class PictureDraws {
 public:
  PictureDraws(uint64_t seed, uint32_t picture) : seed_(seed), picture_(picture) {}
  float Uniform(float low, float high);
  int Below(int count) { return static_cast<int>(Uniform(0, static_cast<float>(count))); }

 private:
  uint64_t seed_;
  uint32_t picture_, count_ = 0;
};

// A class of pictures that the caller draws. Calls may be concurrent.
struct DrawnClass {
  std::string name;
  int size;                                                 // pixels both ways
  std::function<std::vector<uint8_t>(PictureDraws&)> draw;  // (size, size, 3)
};

struct PictureOptions {
  std::string dataset;                 // mnist, fashion_mnist, cifar10, folder or digits
  std::string directory = {};          // of its files; none for `digits`
  int size = 32, channels = 3;         // what the pictures become
  int64_t digits = 60000;              // pictures that `digits` draws
  uint64_t seed = 0;                   // of `digits`
  std::vector<DrawnClass> drawn = {};  // that `digits` has beside its digits
};

// The names of the data sets, for help texts.
std::vector<std::string> DatasetNames();

// Loads or draws a data set. Pictures keep their shape: they are cropped to a square about the
// middle and brought to the size by area averages; grey is the mean of the colours. Every class has
// pictures. Throws Error that says where to get missing files and how to lay them out, what is
// wrong in one, or that this machine has not the memory.
PictureSet LoadPictures(const PictureOptions& options);

// SHA-256 of pixels, labels and names of the classes: the same where the pictures are.
std::string PicturesHash(const PictureSet& pictures);

// ---- the readers, one file each: they accept what is exactly right, and throw Error otherwise

// The shape of a file of the IDX format (the MNIST family's) of unsigned bytes. These follow in
// `bytes`, row-major, and are at most 1 GiB.
std::vector<int> ReadIdxShape(ByteStream& bytes);

// One batch of CIFAR-10's binary version: `records` of a label and 3 x 32 x 32 bytes, planes R, G,
// B, and nothing else. Appends to `pictures`, which has the size and channels of the data set.
void ReadCifar10(ByteStream& bytes, int64_t records, PictureSet& pictures);

// A PNG or BMP file, whole and opaque, as one picture of `size` and `channels`. No JPEG: the
// library's reader of it writes out of bounds for damaged files.
std::vector<uint8_t> ParsePicture(std::span<const uint8_t> bytes, const std::string& origin,
                                  int size, int channels);

// ---- and what they share

// The largest edge of a picture in a file.
inline constexpr int kMaxEdge = 4096;

// Throws Error if `count` pictures of the set's size, and once more as many for what is made of
// them, are more than this machine's memory; `origin` names them.
void CheckRoom(int64_t count, const PictureSet& set, const std::string& origin);

// A picture (height, width, in_channels) cropped, resized and converted.
std::vector<uint8_t> FitPicture(const uint8_t* pixels, int height, int width, int in_channels,
                                int size, int channels);

// Every picture of sub-folder <class> of `directory`; classes are sorted by name. What begins with
// a dot belongs to other programs; anything else is refused.
PictureSet LoadFolder(const PictureOptions& options);
// Digits 0 to 9 of several fonts, turned, moved, scaled and coloured at random, and the classes of
// `options.drawn`, all in turn.
PictureSet DrawDigits(const PictureOptions& options);

}  // namespace mjp

#endif  // IMAGE_DIFFUSION_DATA_PICTURES_H_
