// MNIST's family and CIFAR-10, damaged: each fault is refused with place and remedy, at once and in
// little memory. A fault that somebody meets is a row.

#include "tests/image_diffusion/mnist_faults.h"

namespace mjp_test {
namespace {

mjp::PictureOptions Options(const std::string& dataset, const std::string& folder) {
  return {.dataset = dataset, .directory = folder, .size = 2, .channels = 1};
}

TEST(MnistFaultsTest, AreAllRefused) {
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms::owner_all | fs::perms::others_exec);
  const std::string folder = dir / "set";
  for (const Fault& fault : MnistFaults()) {
    SCOPED_TRACE(fault.name);
    WriteMnist(folder);
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
