#ifndef TESTS_IMAGE_DIFFUSION_FOLDER_FAULTS_H_
#define TESTS_IMAGE_DIFFUSION_FOLDER_FAULTS_H_

#include <functional>
#include <string>
#include <vector>

#include "tests/image_diffusion/faulty_sets.h"

// A small folder of pictures, and the ways in which its layout is damaged.

namespace mjp_test {

inline const Bytes kColor = {200, 100, 50};

// Three pictures, of which one is an example that a row replaces: sizes are mixed.
inline void WriteGoodSet(const std::string& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder + "/a");
  fs::create_directories(folder + "/b");
  WriteBytes(folder + "/a/1.png", Png(5, 3, kColor));
  WriteBytes(folder + "/a/2.bmp", Bmp(4, 4, kColor));
  WriteBytes(folder + "/b/1.png", Png(7, 7, {90}));
}

// A picture of these bytes in place of a good one.
inline Fault Picture(const std::string& name, const Bytes& bytes,
                     const std::vector<std::string>& said = {"a/1.png"}) {
  return {name, [=](const std::string& folder) { WriteBytes(folder + "/a/1.png", bytes); }, said};
}

// `damage` with the name of what it puts beside the good pictures.
inline Fault Layout(const std::string& name, const std::string& said,
                    const std::function<void(const std::string&)>& damage) {
  return {name, damage, {said}};
}

inline std::vector<Fault> LayoutFaults() {
  const auto add_file = [](const std::string& path) {
    return [=](const std::string& folder) { WriteBytes(folder + "/" + path, Png(2, 2, kColor)); };
  };
  const auto add_folder = [](const std::string& path) {
    return [=](const std::string& folder) {
      fs::create_directory(folder + "/" + path);
      WriteBytes(folder + "/" + path + "/1.png", Png(2, 2, kColor));
    };
  };
  return {
      Picture("a JPEG", {0xFF, 0xD8, 0xFF, 0xE0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1}),
      Picture("a GIF", {'G', 'I', 'F', '8', '9', 'a', 1, 0, 1, 0, 0, 0, 0}),
      Picture("a text", {'h', 'e', 'l', 'l', 'o', '\n'}),
      Picture("a gzip", Gzip(Png(5, 3, kColor))),
      Layout("a picture beside the classes", "stray.png", add_file("stray.png")),
      Layout("a folder in a class", "deep", add_folder("a/deep")),
      Layout("a class without pictures", "/c",
             [](const std::string& folder) { fs::create_directory(folder + "/c"); }),
      Layout("a class that is a link to nothing", "gone",
             [](const std::string& folder) { fs::create_symlink("absent", folder + "/gone"); }),
      Layout("a class that is a link to itself", "self",
             [](const std::string& folder) { fs::create_symlink("self", folder + "/self"); }),
      Layout("a class whose name is no UTF-8", "UTF-8", add_folder("caf\xe9")),
      Layout("a class with a line break in its name", "line", add_folder("two\nlines")),
      Layout("no class", "no pictures",
             [](const std::string& folder) {
               fs::remove_all(folder);
               fs::create_directory(folder);
             }),
      Layout("hidden files alone", "no pictures",
             [](const std::string& folder) {
               fs::remove_all(folder);
               fs::create_directory(folder);
               fs::create_directory(folder + "/.git");
               WriteBytes(folder + "/.git/1.png", Png(2, 2, kColor));
             }),
      Layout("257 classes", "256",
             [](const std::string& folder) {
               for (int i = 0; i < 257; ++i) {
                 const std::string name = folder + "/c" + std::to_string(i);
                 fs::create_directory(name);
                 WriteBytes(name + "/1.png", Png(1, 1, kColor));
               }
             }),
      Layout("a PNG of 8 GiB of holes", "a/1.png",
             [](const std::string& folder) {
               WriteSparse(folder + "/a/1.png", kPngSignature, uint64_t{8} << 30);
             }),
      {"a class that may not be listed",
       [](const std::string& folder) {
         fs::permissions(folder, fs::perms::owner_all | fs::perms::others_all);
         fs::permissions(folder + "/a", fs::perms::none);
       },
       {"/a"},
       true},
      Layout("no folder", "DIR/<class>", [](const std::string& folder) { fs::remove_all(folder); }),
      Layout("a file instead of the folder", "DIR/<class>",
             [](const std::string& folder) {
               fs::remove_all(folder);
               WriteBytes(folder, {1});
             }),
      Layout("a link to itself instead of the folder", "DIR/<class>",
             [](const std::string& folder) {
               fs::remove_all(folder);
               fs::create_symlink(folder, folder);
             }),
  };
}

}  // namespace mjp_test

#endif  // TESTS_IMAGE_DIFFUSION_FOLDER_FAULTS_H_
