// Folders of pictures, damaged: each fault of a file or of the layout is refused with place and
// remedy. What formats allow is read. A fault that somebody meets is a row.

#include "tests/image_diffusion/folder_faults.h"

namespace mjp_test {
namespace {

mjp::PictureSet Load(const std::string& folder, int channels = 3) {
  return mjp::LoadPictures(
      {.dataset = "folder", .directory = folder, .size = 2, .channels = channels});
}

// A PNG with this header and these rows before compression.
Bytes PngOf(const Bytes& header, const Bytes& rows, const std::vector<Bytes>& between = {}) {
  return Joined({kPngSignature, PngChunk("IHDR", header), Joined(between),
                 PngChunk("IDAT", Deflate(rows, MAX_WBITS)), PngChunk("IEND", {})});
}

// A PNG of 5 x 3 pixels with these bytes as its compressed rows.
Bytes PngOfRows(const Bytes& packed) {
  return Joined({kPngSignature, PngChunk("IHDR", PngHeader(5, 3, 2)), PngChunk("IDAT", packed),
                 PngChunk("IEND", {})});
}
// The last byte changed by `flip`, and so many bytes more at the end.
Bytes Changed(Bytes bytes, uint8_t flip, int more = 0) {
  bytes.back() ^= flip;
  bytes.resize(static_cast<size_t>(static_cast<int>(bytes.size()) + more), 7);
  return bytes;
}

std::vector<Fault> PngFaults() {
  std::vector<Fault> faults;
  const Bytes good = Png(5, 3, kColor);
  for (size_t length = 0; length < good.size(); ++length) {
    faults.push_back(
        Picture("PNG ends after " + std::to_string(length), {good.begin(), good.begin() + length}));
  }
  for (size_t at = 0; at < good.size(); ++at) {  // the last chunk's content does not matter, its
    Bytes flipped = good;                        // checksum does
    flipped[at] ^= 0x10;
    faults.push_back(Picture("PNG has a flipped bit in byte " + std::to_string(at), flipped));
  }
  const Bytes rows(3 * 16), packed = Deflate(rows, MAX_WBITS);
  for (const uint32_t extent : {0u, 4097u, 1u << 30, (1u << 31) - 1, 1u << 31, ~0u}) {
    faults.push_back(Picture("PNG is " + std::to_string(extent) + " wide",
                             PngOf(PngHeader(extent, 3, 2), rows)));
    faults.push_back(Picture("PNG is " + std::to_string(extent) + " high",
                             PngOf(PngHeader(5, extent, 2), rows)));
  }
  for (const uint8_t type : {1, 5, 7, 255})
    faults.push_back(
        Picture("PNG of colour type " + std::to_string(type), PngOf(PngHeader(5, 3, type), rows)));
  for (const uint8_t depth : {0, 3, 32})
    faults.push_back(
        Picture("PNG of depth " + std::to_string(depth), PngOf(PngHeader(5, 3, 2, depth), rows)));
  for (const size_t at : {10, 11, 12}) {  // compression, filter, interlacing
    Bytes header = PngHeader(5, 3, 2);
    header[at] = 9;
    faults.push_back(Picture("PNG header has 9 at " + std::to_string(at), PngOf(header, rows)));
  }
  Bytes filter(rows);
  filter[0] = 7;
  const Bytes apple = Joined(
      {kPngSignature, PngChunk("CgBI", {80, 0, 32, 2}), Bytes(good.begin() + 8, good.end())});
  const std::vector<Fault> more = {
      Picture("PNG has fewer rows than it says", PngOf(PngHeader(5, 3, 2), Bytes(16))),
      Picture("PNG has a filter that is none", PngOf(PngHeader(5, 3, 2), filter)),
      Picture("PNG has more rows than it says", PngOf(PngHeader(5, 3, 2), Bytes(4 * 16))),
      Picture("PNG has a byte more than its rows", PngOf(PngHeader(5, 3, 2), Bytes(3 * 16 + 1))),
      Picture("PNG of 16 bits that says 8", PngOf(PngHeader(5, 3, 2), Bytes(3 * 31))),
      Picture("PNG has 200 MB of rows", PngOf(PngHeader(5, 3, 2), Bytes(200000000))),
      Picture("PNG whose rows have a wrong checksum", PngOfRows(Changed(packed, 1))),
      Picture("PNG whose rows lack their checksum", PngOfRows(Changed(packed, 0, -4))),
      Picture("PNG whose rows go on behind their end", PngOfRows(Changed(packed, 0, 5))),
      Picture("PNG goes on behind its end", Joined({good, {'x'}})),
      Picture("two PNGs in one file", Joined({good, good})),
      Picture("PNG that is animated",
              PngOf(PngHeader(5, 3, 2), rows, {PngChunk("acTL", {0, 0, 0, 2, 0, 0, 0, 0})}),
              {"animated"}),
      Picture("PNG lacks its palette", PngOf(PngHeader(5, 3, 3), Bytes(18))),
      Picture("PNG has no data",
              Joined({kPngSignature, PngChunk("IHDR", PngHeader(5, 3, 2)), PngChunk("IEND", {})})),
      Picture("PNG has an empty chunk before its rows",
              Joined({kPngSignature, PngChunk("IHDR", PngHeader(5, 3, 2)), PngChunk("IDAT", {}),
                      PngChunk("IDAT", packed), PngChunk("IEND", {})}),
              {"empty chunk"}),
      Picture("PNG of an iPhone, whose red is blue", apple),
      Picture("PNG that can be seen through", Png(5, 3, {200, 100, 50, 128}), {"transparent"}),
      Picture("PNG with a colour that is transparent",
              PngOf(PngHeader(2, 2, 2), {0, 1, 2, 3, 4, 5, 6, 0, 9, 9, 9, 9, 9, 9},
                    {PngChunk("tRNS", {0, 1, 0, 2, 0, 3})}),
              {"transparent"}),
  };
  faults.insert(faults.end(), more.begin(), more.end());
  return faults;
}

std::vector<Fault> BmpFaults() {
  const Bytes good = Bmp(5, 3, kColor);
  std::vector<Fault> faults;
  for (size_t length = 0; length < good.size(); length += length < 60 ? 1 : 7) {
    faults.push_back(
        Picture("BMP ends after " + std::to_string(length), {good.begin(), good.begin() + length}));
  }
  const auto set = [&](const std::string& name, size_t at, uint32_t value) {
    Bytes bytes = good;
    SetLittleEndian(bytes, at, value);
    faults.push_back(Picture("BMP: " + name, bytes));
  };
  set("no width", 18, 0);
  set("no height", 22, 0);
  set("a negative width", 18, ~0u);
  set("6 wide", 18, 6);
  set("4 high", 22, 4);
  set("4 high, from the top", 22, static_cast<uint32_t>(-4));
  set("65536 wide", 18, 65536);
  set("the lowest height", 22, 1u << 31);
  set("7 bits", 28, 7);
  set("32 bits", 28, 32);
  set("run lengths", 30, 1);
  set("data behind the end", 10, 1000);
  set("data at the very end of numbers", 10, ~0u);
  set("a header of 41 bytes", 14, 41);
  return faults;
}

class FolderFaultsTest : public ::testing::Test {
 protected:
  FolderFaultsTest() {
    fs::permissions(dir_.path(), fs::perms::owner_all | fs::perms::others_exec);
  }
  void ExpectRefusals(const std::vector<Fault>& faults) const {
    for (const Fault& fault : faults) {
      SCOPED_TRACE(fault.name);
      WriteGoodSet(folder_);
      fault.damage(folder_);
      ExpectRefusal(Ending([&] { Load(folder_); }, fault.as_nobody), fault, folder_);
    }
  }
  const TempDir dir_;
  const std::string folder_ = dir_ / "set";
};

TEST_F(FolderFaultsTest, OfPngsAreAllRefused) { ExpectRefusals(PngFaults()); }
TEST_F(FolderFaultsTest, OfBmpsAreAllRefused) { ExpectRefusals(BmpFaults()); }
TEST_F(FolderFaultsTest, OfTheLayoutAreAllRefused) { ExpectRefusals(LayoutFaults()); }
TEST_F(FolderFaultsTest, OfAnyFileAreAllRefused) { ExpectRefusals(FaultsOfAnyFile("a/1.png")); }

// A PNG of one row, whose palette has a colour for each three of `colours`.
Bytes Paletted(uint32_t width, uint8_t depth, const Bytes& indices, const Bytes& colours,
               const std::vector<Bytes>& between = {}) {
  return PngOf(PngHeader(width, 1, 3, depth), Joined({{0}, indices}),
               {PngChunk("PLTE", colours), Joined(between)});
}
Bytes Parsed(const Bytes& png) { return mjp::ParsePicture(png, "a.png", 1, 3); }

// An index beyond the palette would have the colour of a picture that was read before.
TEST(PaletteTest, HasEveryColourOfItsPictureOrIsRefused) {
  const Bytes red = {200, 1, 2}, five = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  const Bytes whole(3 * 256, 50);
  struct Row {
    const char* name;
    Bytes png;
  };
  for (const Row& row : {
           Row{"8 bits", Paletted(2, 8, {0, 1}, red)},
           Row{"the last index", Paletted(2, 8, {0, 255}, {whole.begin(), whole.end() - 3})},
           Row{"4 bits", Paletted(2, 4, {0x05}, five)},
           Row{"2 bits", Paletted(4, 2, {0b00011011}, {five.begin(), five.begin() + 9})},
           Row{"1 bit", Paletted(8, 1, {0b00000001}, red)},
           Row{"opaque", Paletted(2, 8, {0, 1}, red, {PngChunk("tRNS", {255})})},
       }) {
    const auto ending = Ending([&] {
      Parsed(Paletted(1, 8, {255}, whole));
      Parsed(row.png);
    });
    EXPECT_THAT(ending, ::testing::HasSubstr("has a colour that its palette has not")) << row.name;
  }
  EXPECT_EQ(Parsed(Paletted(1, 8, {0}, red)), red);
  EXPECT_EQ(Parsed(Paletted(1, 4, {0x40}, five)), (Bytes{12, 13, 14}));
  EXPECT_EQ(Parsed(Paletted(1, 2, {0b11000000}, five)), (Bytes{9, 10, 11}));
  EXPECT_EQ(Parsed(Paletted(1, 1, {0}, red, {PngChunk("tRNS", {255})})), red);
  EXPECT_THAT(Ending([&] { Parsed(Paletted(1, 8, {0}, red, {PngChunk("tRNS", {0})})); }),
              ::testing::HasSubstr("transparent"));
}

// A BMP of `width` pixels in each of `rows`, which have a multiple of four bytes. Its palette is
// `colours` (blue, green, red, 0), of which it says that it uses `used`, 0 for all.
Bytes PalettedBmp(int width, uint8_t bits, const std::vector<Bytes>& rows, const Bytes& colours,
                  uint32_t used = 0) {
  Bytes header = Bmp(width, 0, {});
  SetLittleEndian(header, 10, static_cast<uint32_t>(header.size() + colours.size()));
  SetLittleEndian(header, 22, static_cast<uint32_t>(rows.size()));
  SetLittleEndian(header, 46, used);
  header[28] = bits;
  return Joined({header, colours, Joined(rows)});
}

TEST(PaletteTest, OfABmpHasEveryColourOfItsPictureOrItIsRefused) {
  const Bytes red = {2, 1, 200, 0}, whole(4 * 256, 50);
  const Bytes two = Joined({red, {5, 4, 3, 0}}), three = Joined({two, {8, 7, 6, 0}});
  Bytes no_palette = PalettedBmp(1, 8, {{0, 0, 0, 0}}, red);
  SetLittleEndian(no_palette, 10, 50);  // rows within the header
  struct Row {
    const char* name;
    Bytes bmp;
  };
  for (const Row& row : {
           Row{"8 bits", PalettedBmp(2, 8, {{0, 200, 0, 0}}, two)},
           Row{"the first row", PalettedBmp(1, 8, {{2, 0, 0, 0}, {0, 0, 0, 0}}, two)},
           Row{"the last row", PalettedBmp(1, 8, {{0, 0, 0, 0}, {2, 0, 0, 0}}, two)},
           Row{"the last index",
               PalettedBmp(1, 8, {{255, 0, 0, 0}}, {whole.begin() + 4, whole.end()})},
           Row{"4 bits, a high half", PalettedBmp(3, 4, {{0x01, 0x30, 0, 0}}, three)},
           Row{"4 bits, a low half", PalettedBmp(2, 4, {{0x03, 0, 0, 0}}, three)},
           Row{"1 bit", PalettedBmp(8, 1, {{0b00000001, 0, 0, 0}}, red)},
           Row{"beyond those in use", PalettedBmp(1, 8, {{2, 0, 0, 0}}, three, 2)},
           Row{"fewer than it says", PalettedBmp(1, 8, {{2, 0, 0, 0}}, two, 3)},
           Row{"no palette", no_palette},
       }) {
    const auto ending = Ending([&] {
      Parsed(PalettedBmp(1, 8, {{255, 0, 0, 0}}, whole));
      Parsed(row.bmp);
    });
    EXPECT_THAT(ending,
                ::testing::HasSubstr("code 2: a.png: has a colour that its palette has not"))
        << row.name;
  }
  const Bytes first = {200, 1, 2}, last = {6, 7, 8};  // what pads a row is no pixel of it
  EXPECT_EQ(Parsed(PalettedBmp(1, 8, {{2, 9, 9, 9}}, three)), last);
  EXPECT_EQ(Parsed(PalettedBmp(1, 8, {{2, 9, 9, 9}}, three, 3)), last);
  EXPECT_EQ(Parsed(PalettedBmp(1, 8, {{255, 0, 0, 0}}, whole)), (Bytes{50, 50, 50}));
  EXPECT_EQ(Parsed(PalettedBmp(1, 4, {{0x2F, 9, 9, 9}}, three)), last);
  EXPECT_EQ(Parsed(PalettedBmp(1, 1, {{0b01111111, 9, 9, 9}}, red)), first);
}

TEST_F(FolderFaultsTest, MorePicturesThanTheMachineHoldsAreRefused) {
  WriteGoodSet(folder_);
  // a picture of this size would be larger than any memory
  EXPECT_THAT(Ending([&] {
                mjp::LoadPictures({.dataset = "folder", .directory = folder_, .size = 4000000});
              }),
              ::testing::AllOf(::testing::StartsWith("code 3: "), ::testing::HasSubstr(folder_)));
}

// What is whole and says so is read, whatever it is called.
TEST_F(FolderFaultsTest, WhatFormatsAllowIsRead) {
  WriteGoodSet(folder_);
  const mjp::PictureSet plain = Load(folder_);
  EXPECT_EQ(plain.labels, (Bytes{0, 0, 1}));
  Bytes top_down = Bmp(5, 3, kColor);
  SetLittleEndian(top_down, 22, static_cast<uint32_t>(-3));
  const Bytes packed = Deflate({0, 200, 100, 50}, MAX_WBITS);
  const std::vector<std::pair<std::string, Bytes>> rows = {
      {"top_down.bmp", top_down},
      {"opaque.png", Png(5, 3, {200, 100, 50, 255})},
      {"n\xe9me.png", Png(5, 3, kColor)},
      {"palette.png",
       PngOf(PngHeader(2, 2, 3), {0, 0, 0, 0, 0, 0}, {PngChunk("PLTE", {200, 100, 50})})},
      {"sixteen.png", PngOf(PngHeader(1, 1, 2, 16), {0, 200, 1, 100, 2, 50, 3})},
      {"interlaced.png", PngOf({0, 0, 0, 2, 0, 0, 0, 2, 8, 2, 0, 0, 1},
                               {0, 200, 100, 50, 0, 200, 100, 50, 0, 200, 100, 50, 200, 100, 50})},
      {"parts.png",
       Joined({kPngSignature, PngChunk("IHDR", PngHeader(1, 1, 2)),
               PngChunk("IDAT", {packed.begin(), packed.begin() + 3}), PngChunk("IDAT", {}),
               PngChunk("IDAT", {packed.begin() + 3, packed.end()}), PngChunk("IEND", {})})},
      {"text.png", PngOf(PngHeader(1, 1, 2), {0, 200, 100, 50}, {PngChunk("tEXt", {'a', 0, 'b'})})},
  };
  for (const auto& [name, bytes] : rows) {
    SCOPED_TRACE(name);
    WriteGoodSet(folder_);
    WriteBytes(folder_ + "/b/" + name, bytes);
    fs::create_directory(folder_ + "/.checkpoints");
    WriteBytes(folder_ + "/a/.DS_Store", {1, 2, 3});
    const mjp::PictureSet set = Load(folder_);
    EXPECT_EQ(set.classes, (std::vector<std::string>{"a", "b"}));
    ASSERT_EQ(set.count(), 4);
    // the new picture is one colour: that of the good PNG, in the order of the file or its reverse
    const bool first = name < std::string("1.png");
    const auto* seen = set.pixels.data() + (first ? 2 : 3) * set.PictureBytes();
    const bool bmp = name.ends_with(".bmp");
    EXPECT_EQ((Bytes{seen[0], seen[1], seen[2]}), bmp ? (Bytes{50, 100, 200}) : kColor);
  }
  // classes may be links
  WriteGoodSet(folder_);
  fs::rename(folder_ + "/b", dir_ / "elsewhere");
  fs::create_directory_symlink(dir_ / "elsewhere", folder_ + "/b");
  EXPECT_EQ(Load(folder_).pixels, plain.pixels);
}

}  // namespace
}  // namespace mjp_test
