#ifndef DATASETS_CONVERT_HDF5_H_
#define DATASETS_CONVERT_HDF5_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mjp::datasets {

// What conversion asks of an HDF5 file. Errors name file and path within it.
class Hdf5File {
 public:
  virtual ~Hdf5File() = default;
  virtual bool Has(const std::string& path) = 0;
  // Names of what is in a group.
  virtual std::vector<std::string> Children(const std::string& group) = 0;
  virtual bool IsArray(const std::string& path) = 0;
  // An array's extents, the frames first, and its type in LeRobot's words.
  virtual std::vector<int64_t> Shape(const std::string& path) = 0;
  virtual std::string Dtype(const std::string& path) = 0;
  // Rows first ... first + count - 1 as doubles.
  virtual std::vector<double> Read(const std::string& path, int64_t first, int64_t count) = 0;
};

// What the library mjpolicy_hdf5 gives, by the name "mjpolicy_hdf5_functions".
struct Hdf5Functions {
  std::unique_ptr<Hdf5File> (*open)(const std::string& path);
};

}  // namespace mjp::datasets

#endif  // DATASETS_CONVERT_HDF5_H_
