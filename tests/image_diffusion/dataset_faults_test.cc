// MNIST's family and CIFAR-10, damaged: each fault is refused with place and remedy, at once and in
// little memory. A fault that somebody meets is a row.

#include "tests/image_diffusion/faulty_sets.h"

namespace mjp_test {
namespace {

const std::string kImages = "train-images-idx3-ubyte", kLabels = "train-labels-idx1-ubyte";
constexpr uint32_t kCount = 20, kEdge = 4;

// 20 pictures of 4x4, two of each class.
Bytes MnistImages() {
  Bytes pixels(kCount * kEdge * kEdge);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 + 1);
  return Idx({kCount, kEdge, kEdge}, pixels);
}
Bytes MnistLabels() {
  Bytes labels(kCount);
  for (uint32_t i = 0; i < kCount; ++i) labels[i] = static_cast<uint8_t>(i % 10);
  return Idx({kCount}, labels);
}

mjp::PictureOptions Options(const std::string& dataset, const std::string& folder) {
  return {.dataset = dataset, .directory = folder, .size = 2, .channels = 1};
}

Fault Cut(const std::string& file, size_t length) {
  return {file + " ends after " + std::to_string(length),
          [=](const std::string& folder) { fs::resize_file(folder + "/" + file, length); },
          {file}};
}
Fault SetByte(const std::string& file, size_t at, uint8_t value,
              const std::vector<std::string>& said = {}) {
  return {file + " has " + std::to_string(value) + " at " + std::to_string(at),
          [=](const std::string& folder) {
            Edit(folder + "/" + file, [&](Bytes& bytes) { bytes[at] = value; });
          },
          said};
}
Fault SetExtent(const std::string& file, int axis, uint32_t value) {
  return {file + " axis " + std::to_string(axis) + " is " + std::to_string(value),
          [=](const std::string& folder) {
            Edit(folder + "/" + file,
                 [&](Bytes& bytes) { SetBigEndian(bytes, 4 + 4 * axis, value); });
          }};
}

std::vector<Fault> HeaderFaults() {
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

std::vector<Fault> ContentFaults() {
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
std::vector<Fault> GzipFaults() {
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

std::vector<Fault> MnistFaults() {
  std::vector<Fault> faults = HeaderFaults();
  for (const auto& more :
       {ContentFaults(), GzipFaults(), FaultsOfAnyFile(kImages), FaultsOfAnyFile(kLabels)}) {
    faults.insert(faults.end(), more.begin(), more.end());
  }
  return faults;
}

TEST(MnistFaultsTest, AreAllRefused) {
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms::owner_all | fs::perms::others_exec);
  const std::string folder = dir / "set";
  for (const Fault& fault : MnistFaults()) {
    SCOPED_TRACE(fault.name);
    fs::remove_all(folder);
    fs::create_directory(folder);
    WriteBytes(folder + "/" + kImages, MnistImages());
    WriteBytes(folder + "/" + kLabels, MnistLabels());
    fault.damage(folder);
    ExpectRefusal(Ending([&] { mjp::LoadPictures(Options("mnist", folder)); }, fault.as_nobody),
                  fault, folder);
  }
}

TEST(MnistFaultsTest, WhatIsWholeIsRead) {
  const TempDir dir;
  WriteBytes(dir / kImages, MnistImages());
  WriteBytes(dir / kLabels, MnistLabels());
  const mjp::PictureSet raw = mjp::LoadPictures(Options("mnist", dir.path()));
  EXPECT_EQ(raw.count(), kCount);
  fs::create_directory(dir / "g\xffz");  // a name that is no UTF-8
  WriteBytes(dir / "images", Gzip(MnistImages()));
  fs::create_symlink(dir / "images", dir / "g\xffz/" + kImages + ".gz");
  WriteBytes(dir / "g\xffz/" + kLabels + ".gz", Gzip(MnistLabels()));
  const mjp::PictureSet packed = mjp::LoadPictures(Options("mnist", dir / "g\xffz"));
  EXPECT_EQ(packed.pixels, raw.pixels);
  EXPECT_EQ(packed.labels, raw.labels);
}

// ---- CIFAR-10 -----------------------------------------------------------------------------------

constexpr size_t kRecord = 3073, kRecords = 10000;

std::string Batch(int i) { return "data_batch_" + std::to_string(i) + ".bin"; }

std::vector<Fault> CifarFaults() {
  const std::string file = Batch(2);
  const auto edit = [=](const std::function<void(Bytes&)>& change) {
    return [=](const std::string& folder) { Edit(folder + "/" + file, change); };
  };
  std::vector<Fault> faults;
  for (const size_t length : {size_t{1}, kRecord - 1, kRecord, 5000 * kRecord,
                              kRecords * kRecord - kRecord, kRecords * kRecord - 1}) {
    faults.push_back(Cut(file, length));
  }
  const std::vector<Fault> more = {
      SetByte(file, 0, 10, {"record 0", "class 10 of 10"}),
      SetByte(file, (kRecords - 1) * kRecord, 255, {"record 9999", "class 255 of 10"}),
      {"the Python version", edit([](Bytes& bytes) { bytes[0] = 0x80, bytes[1] = 2; }), {file}},
      {"a record more", edit([](Bytes& bytes) { bytes.resize(bytes.size() + kRecord); })},
      {"a byte more", edit([](Bytes& bytes) { bytes.push_back(0); })},
      {"the end is blank",
       edit([](Bytes& bytes) { std::fill(bytes.end() - 2 * kRecord, bytes.end(), uint8_t{0}); }),
       {"blank", file}},
      {"as long as it should be, and nothing but holes",
       [=](const std::string& folder) { WriteSparse(folder + "/" + file, {}, kRecords * kRecord); },
       {"blank"}},
      {"no batch of that number",
       [=](const std::string& folder) { fs::remove(folder + "/" + file); },
       {file, "cifar-10-binary.tar.gz"}},
      {"a batch twice",
       [=](const std::string& folder) {
         fs::remove(folder + "/" + file);
         fs::create_symlink(Batch(1), folder + "/" + file);
       },
       {file, Batch(1), "same"}},
      {"gzip that ends early", edit([](Bytes& bytes) {
         bytes = Gzip(bytes);
         bytes.resize(bytes.size() - 9);
       })},
      {"gzip of 100 MB", edit([](Bytes& bytes) {
         bytes.resize(100000000);
         bytes = Gzip(bytes);
       })},
  };
  faults.insert(faults.end(), more.begin(), more.end());
  for (const Fault& fault : FaultsOfAnyFile(file)) faults.push_back(fault);
  return faults;
}

TEST(CifarFaultsTest, AreAllRefused) {
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms::owner_all | fs::perms::others_exec);
  const std::string folder = dir / "set";
  fs::create_directory(folder);
  Bytes batch(kRecords * kRecord);
  for (int i = 1; i <= 5; ++i) {
    std::fill(batch.begin(), batch.end(), static_cast<uint8_t>(40 * i));
    for (size_t record = 0; record < kRecords; ++record) {
      batch[record * kRecord] = static_cast<uint8_t>((record + i) % 10);
    }
    WriteBytes(folder + "/" + Batch(i), batch);
  }
  const mjp::PictureSet set = mjp::LoadPictures(Options("cifar10", folder));
  EXPECT_EQ(set.count(), 50000);
  for (const Fault& fault : CifarFaults()) {
    SCOPED_TRACE(fault.name);
    const std::string file = folder + "/" + Batch(2);
    fs::copy_file(file, dir / "whole", fs::copy_options::overwrite_existing);
    fault.damage(folder);
    ExpectRefusal(Ending([&] { mjp::LoadPictures(Options("cifar10", folder)); }, fault.as_nobody),
                  fault, folder);
    fs::remove_all(file);
    fs::rename(dir / "whole", file);
  }
}

// ---- drawn --------------------------------------------------------------------------------------

TEST(DigitsFaultsTest, MorePicturesThanTheMachineHoldsAreRefused) {
  mjp::PictureOptions options = {.dataset = "digits", .size = 512, .digits = 10000000};
  const std::string end = Ending([&] { mjp::LoadPictures(options); });
  EXPECT_THAT(end, ::testing::StartsWith("code 3: "));
  EXPECT_THAT(end, ::testing::HasSubstr("10000000 pictures of 512x512x3"));
}

}  // namespace
}  // namespace mjp_test
