#ifndef BASE_NPY_H_
#define BASE_NPY_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mjp::app {

// Arrays in NumPy's .npy files: little-endian, C order, versions 1.0 to 3.0.

enum class NpyType { kFloat32, kFloat64, kInt64, kUint8 };

// Bytes of one element.
int NpySize(NpyType type);

struct NpyArray {
  NpyType type = NpyType::kFloat64;
  std::vector<int64_t> shape;  // () is a scalar
  std::vector<uint8_t> bytes;  // the elements, in C order

  // Number of elements.
  int64_t size() const { return static_cast<int64_t>(bytes.size()) / NpySize(type); }
  // The elements converted to double, exact for all but integers beyond 2^53.
  std::vector<double> ToDoubles() const;
  // The elements as whole numbers. Throws Error naming `name` unless the type is an integer.
  std::vector<int64_t> ToIntegers(const std::string& name) const;
};

// An array of doubles, or of bytes, in the given shape (whose product is values.size()).
NpyArray MakeNpy(std::span<const double> values, std::vector<int64_t> shape);
NpyArray MakeNpy(std::span<const uint8_t> values, std::vector<int64_t> shape);

// Reads an array from memory; `name` is how errors call it. Throws Error for anything that NumPy
// itself would not write: the header must be exact and its shape must fit the bytes there.
NpyArray ParseNpy(std::span<const uint8_t> file, const std::string& name);

// Reads the array of a .npy file. Throws Error naming the file.
NpyArray ReadNpy(const std::string& path);

// The bytes of a .npy file (version 1.0). Throws Error naming `name` where shape and elements
// differ.
std::string NpyText(const NpyArray& array, const std::string& name);

// Writes a .npy file (version 1.0) as a whole or not at all: under a temporary name in the same
// folder, then renamed. Throws Error naming the file and the system's reason.
void WriteNpy(const std::string& path, const NpyArray& array);

}  // namespace mjp::app

#endif  // BASE_NPY_H_
