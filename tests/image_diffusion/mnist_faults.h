#ifndef TESTS_IMAGE_DIFFUSION_MNIST_FAULTS_H_
#define TESTS_IMAGE_DIFFUSION_MNIST_FAULTS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tests/image_diffusion/faulty_sets.h"

// A small data set of MNIST's format, and all the ways in which it is damaged.

namespace mjp_test {

inline const std::string kImages = "train-images-idx3-ubyte", kLabels = "train-labels-idx1-ubyte";
constexpr uint32_t kCount = 20, kEdge = 4;

// 20 pictures of 4x4, two of each class.
inline Bytes MnistImages() {
  Bytes pixels(kCount * kEdge * kEdge);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 + 1);
  return Idx({kCount, kEdge, kEdge}, pixels);
}
inline Bytes MnistLabels() {
  Bytes labels(kCount);
  for (uint32_t i = 0; i < kCount; ++i) labels[i] = static_cast<uint8_t>(i % 10);
  return Idx({kCount}, labels);
}

inline Fault Cut(const std::string& file, size_t length) {
  return {file + " ends after " + std::to_string(length),
          [=](const std::string& folder) { fs::resize_file(folder + "/" + file, length); },
          {file}};
}
inline Fault SetByte(const std::string& file, size_t at, uint8_t value,
                     const std::vector<std::string>& said = {}) {
  return {file + " has " + std::to_string(value) + " at " + std::to_string(at),
          [=](const std::string& folder) {
            Edit(folder + "/" + file, [&](Bytes& bytes) { bytes[at] = value; });
          },
          said};
}
inline Fault SetExtent(const std::string& file, int axis, uint32_t value) {
  return {file + " axis " + std::to_string(axis) + " is " + std::to_string(value),
          [=](const std::string& folder) {
            Edit(folder + "/" + file,
                 [&](Bytes& bytes) { SetBigEndian(bytes, 4 + 4 * axis, value); });
          }};
}

inline std::vector<Fault> HeaderFaults() {
  std::vector<Fault> faults;
  for (const size_t length : {0, 1, 2, 3, 4, 7, 8, 11, 12, 15, 16, 17, 31, 335})
    faults.push_back(Cut(kImages, length));
  for (const size_t length : {0, 1, 3, 4, 7, 8, 27}) faults.push_back(Cut(kLabels, length));
  for (const std::string& file : {kImages, kLabels}) {
    faults.push_back(SetByte(file, 0, 1, {"IDX"}));
    faults.push_back(SetByte(file, 1, 8, {"IDX"}));
    for (const uint8_t type : {0, 9, 11, 12, 13, 14, 255})
      faults.push_back(SetByte(file, 2, type, {"type " + std::to_string(type)}));
    for (const uint8_t axes : {0, 2, 4, 5, 255}) faults.push_back(SetByte(file, 3, axes));
    for (const int axis : {0, 1, 2}) {
      if (axis > 0 && file == kLabels) continue;
      for (const uint32_t extent : {0u, 3u, 5u, 19u, 21u, 1u << 30, 1u << 31, ~0u})
        if (extent != kEdge) faults.push_back(SetExtent(file, axis, extent));
    }
  }
  return faults;
}

inline std::vector<Fault> ContentFaults() {
  const auto append = [](const std::string& file, const Bytes& more) {
    return [=](const std::string& folder) {
      Edit(folder + "/" + file,
           [&](Bytes& bytes) { bytes.insert(bytes.end(), more.begin(), more.end()); });
    };
  };
  return {
      SetByte(kLabels, 8, 10, {"label 0 is 10 of 10"}),
      SetByte(kLabels, 27, 255, {"label 19 is 255 of 10"}),
      {"one byte more of pictures", append(kImages, {0})},
      {"one byte more of labels", append(kLabels, {0})},
      {"no label of a class",
       [](const std::string& folder) {
         Edit(folder + "/" + kLabels, [](Bytes& bytes) { bytes[8 + 3] = bytes[8 + 13] = 1; });
       },
       {"no picture of class 3"}},
      {"labels are zeros",
       [](const std::string& folder) {
         WriteBytes(folder + "/" + kLabels, Idx({kCount}, Bytes(kCount)));
       },
       {"no picture of class 1"}},
      {"the end is blank, as of a file that was reserved and not filled",
       [](const std::string& folder) {
         Edit(folder + "/" + kImages, [](Bytes& bytes) {
           std::fill(bytes.end() - 2 * kEdge * kEdge, bytes.end(), uint8_t{0});
         });
       },
       {"blank", kImages}},
      {"labels and pictures changed places",
       [](const std::string& folder) {
         fs::rename(folder + "/" + kImages, folder + "/x");
         fs::rename(folder + "/" + kLabels, folder + "/" + kImages);
         fs::rename(folder + "/x", folder + "/" + kLabels);
       },
       {"axes"}},
      {"labels of another set",
       [](const std::string& folder) {
         WriteBytes(folder + "/" + kLabels, Idx({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
       },
       {"20 pictures and 10 labels"}},
      {"holes of 8 GiB after the header",
       [](const std::string& folder) {
         WriteSparse(folder + "/" + kImages, Idx({1 << 30, 4, 2}, {}), (uint64_t{8} << 30) + 16);
       }},
      {"holes of 900 MiB, as the header says",
       [](const std::string& folder) {
         WriteSparse(folder + "/" + kImages, Idx({900 << 10, 32, 32}, {}),
                     (uint64_t{900} << 20) + 16);
       }},
      {"pictures of 30000 pixels",
       [](const std::string& folder) {
         WriteSparse(folder + "/" + kImages, Idx({20, 30000, 1500}, {}),
                     uint64_t{20} * 30000 * 1500 + 16);
       },
       {"30000"}},
      {"no pictures",
       [](const std::string& folder) { fs::remove(folder + "/" + kImages); },
       {kImages}},
      {"no folder", [](const std::string& folder) { fs::remove_all(folder); }},
      {"a file instead of the folder",
       [](const std::string& folder) {
         fs::remove_all(folder);
         WriteBytes(folder, {1});
       }},
  };
}

// gzip's header has 10 bytes, its trailer 8.
inline std::vector<Fault> GzipFaults() {
  const std::string file = kImages + ".gz";
  const auto compress = [=](const std::string& folder, const Bytes& bytes) {
    fs::remove(folder + "/" + kImages);
    WriteBytes(folder + "/" + file, bytes);
  };
  const Bytes whole = Gzip(MnistImages());
  std::vector<Fault> faults;
  for (const size_t length :
       {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{9}, size_t{10}, size_t{11},
        whole.size() / 2, whole.size() - 9, whole.size() - 8, whole.size() - 4, whole.size() - 1}) {
    faults.push_back({"gzip ends after " + std::to_string(length),
                      [=](const std::string& folder) {
                        compress(folder, {whole.begin(), whole.begin() + length});
                      },
                      {file}});
  }
  for (const size_t at :
       {size_t{2}, size_t{3}, whole.size() / 2, whole.size() - 8, whole.size() - 1}) {
    faults.push_back({"gzip has a flipped byte at " + std::to_string(at),
                      [=](const std::string& folder) {
                        Bytes bytes = whole;
                        bytes[at] ^= 0xFF;
                        compress(folder, bytes);
                      },
                      {file}});
  }
  const auto bomb = [=](const std::string& folder, const Bytes& header, size_t zeros) {
    Bytes bytes = header;
    bytes.resize(bytes.size() + zeros);
    const Bytes packed = Gzip(bytes);
    compress(folder, packed);
  };
  faults.push_back({"gzip goes on after its end", [=](const std::string& folder) {
                      compress(folder, Joined({whole, whole}));
                    }});
  faults.push_back({"gzip holds 100 MB more than its header says",
                    [=](const std::string& folder) { bomb(folder, MnistImages(), 100000000); }});
  faults.push_back(
      {"gzip holds zeros alone", [=](const std::string& folder) { bomb(folder, {}, 100000000); }});
  faults.push_back({"gzip holds 100 million pictures of a pixel", [=](const std::string& folder) {
                      bomb(folder, Idx({100000000, 1, 1}, {}), 100000000);
                    }});
  return faults;
}

inline std::vector<Fault> MnistFaults() {
  std::vector<Fault> faults = HeaderFaults();
  for (const auto& more :
       {ContentFaults(), GzipFaults(), FaultsOfAnyFile(kImages), FaultsOfAnyFile(kLabels)}) {
    faults.insert(faults.end(), more.begin(), more.end());
  }
  return faults;
}

// The whole set, in the folder `folder`, made anew.
inline void WriteMnist(const std::string& folder) {
  fs::remove_all(folder);
  fs::create_directory(folder);
  WriteBytes(folder + "/" + kImages, MnistImages());
  WriteBytes(folder + "/" + kLabels, MnistLabels());
}

}  // namespace mjp_test

#endif  // TESTS_IMAGE_DIFFUSION_MNIST_FAULTS_H_
