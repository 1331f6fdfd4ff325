// The library mjpolicy_hdf5: HDF5 files by the format's own library, with what that links to.

#include <hdf5.h>

#include <string>

#include "base/error.h"
#include "datasets/convert/hdf5.h"

namespace mjp::datasets {
namespace {

constexpr hsize_t kMostValues = hsize_t{1} << 28;

// An identifier of the library with the function that closes it.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id_ < 0) throw BadInput(what + ": cannot be opened; it is damaged or not there");
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Whether an enumeration is of 0 and 1, as h5py stores NumPy's truth values.
bool IsTruth(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  bool known[2] = {};
  for (const unsigned member : {0u, 1u}) {
    uint8_t value = 0;
    if (H5Tget_member_value(type, member, &value) < 0 || value > 1) return false;
    known[value] = true;
  }
  return known[0] && known[1];
}

herr_t Collect(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

class LibraryFile : public Hdf5File {
 public:
  explicit LibraryFile(const std::string& path)
      : path_(path), file_(OpenQuietly(path), H5Fclose, path) {}

  bool Has(const std::string& path) override {
    // each part must be a link before the next is asked for
    for (size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
      if (H5Lexists(file_, path.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
      if (slash == std::string::npos) return true;
    }
  }

  std::vector<std::string> Children(const std::string& group) override {
    const Handle id(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose, Where(group));
    std::vector<std::string> names;
    if (H5Literate(id, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, Collect, &names) < 0) {
      throw BadInput(Where(group) + ": cannot be listed");
    }
    return names;
  }

  bool IsArray(const std::string& path) override {
    const Handle id(H5Oopen(file_, path.c_str(), H5P_DEFAULT), H5Oclose, Where(path));
    return H5Iget_type(id) == H5I_DATASET;
  }

  std::vector<int64_t> Shape(const std::string& path) override {
    const Handle array(H5Dopen2(file_, path.c_str(), H5P_DEFAULT), H5Dclose, Where(path));
    const Handle space(H5Dget_space(array), H5Sclose, Where(path));
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 1 || rank > 5) throw Unsupported(Where(path) + ": is not an array of rows");
    hsize_t extents[5];
    H5Sget_simple_extent_dims(space, extents, nullptr);
    std::vector<int64_t> shape;
    for (int axis = 0; axis < rank; ++axis) shape.push_back(static_cast<int64_t>(extents[axis]));
    return shape;
  }

  std::string Dtype(const std::string& path) override {
    const Handle array(H5Dopen2(file_, path.c_str(), H5P_DEFAULT), H5Dclose, Where(path));
    const Handle type(H5Dget_type(array), H5Tclose, Where(path));
    const H5T_class_t kind = H5Tget_class(type);
    const size_t size = H5Tget_size(type);
    if (kind == H5T_FLOAT) return size > 4 ? "float64" : "float32";
    if (kind == H5T_INTEGER) {
      return size > 1 ? "int64" : H5Tget_sign(type) == H5T_SGN_NONE ? "uint8" : "int8";
    }
    if (kind == H5T_ENUM && IsTruth(type)) return "bool";
    throw Unsupported(Where(path) + ": is neither of numbers nor of truth values; write it as " +
                      "integers, or take it out of a copy");
  }

  std::vector<double> Read(const std::string& path, int64_t first, int64_t count) override {
    const std::vector<int64_t> shape = Shape(path);
    hsize_t start[5] = {}, extent[5] = {}, values = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      extent[axis] = static_cast<hsize_t>(axis == 0 ? count : shape[axis]);
      if (extent[axis] > kMostValues || (values *= extent[axis]) > kMostValues) {
        throw BadInput(Where(path) + ": has more values in a row than are read at a time");
      }
    }
    start[0] = static_cast<hsize_t>(first);
    if (first < 0 || count < 0 || first > shape[0] || count > shape[0] - first) {
      throw BadInput(Where(path) + ": has " + std::to_string(shape[0]) + " rows, too few");
    }
    const Handle array(H5Dopen2(file_, path.c_str(), H5P_DEFAULT), H5Dclose, Where(path));
    const Handle rows(H5Dget_space(array), H5Sclose, Where(path));
    const Handle memory(H5Screate_simple(static_cast<int>(shape.size()), extent, nullptr), H5Sclose,
                        Where(path));
    std::vector<double> out(values);
    if (values == 0) return out;
    if (H5Sselect_hyperslab(rows, H5S_SELECT_SET, start, nullptr, extent, nullptr) < 0 ||
        !ReadAs(array, memory, rows, Dtype(path), out)) {
      throw BadInput(Where(path) + ": cannot be read; the file is damaged");
    }
    return out;
  }

 private:
  static hid_t OpenQuietly(const std::string& path) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are ours to tell
    return H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  }

  static bool ReadAs(hid_t array, hid_t memory, hid_t rows, const std::string& dtype,
                     std::vector<double>& out) {
    if (dtype != "bool") {
      return H5Dread(array, H5T_NATIVE_DOUBLE, memory, rows, H5P_DEFAULT, out.data()) >= 0;
    }
    // an enumeration is converted to none but its own kind
    std::vector<int8_t> bytes(out.size());
    const Handle type(H5Dget_type(array), H5Tclose, "type");
    if (H5Dread(array, type, memory, rows, H5P_DEFAULT, bytes.data()) < 0) return false;
    out.assign(bytes.begin(), bytes.end());
    return true;
  }

  std::string Where(const std::string& path) const { return path_ + ": " + path; }

  std::string path_;
  Handle file_;
};

std::unique_ptr<Hdf5File> Open(const std::string& path) {
  return std::make_unique<LibraryFile>(path);
}

}  // namespace
}  // namespace mjp::datasets

extern "C" __attribute__((visibility("default")))
const mjp::datasets::Hdf5Functions mjpolicy_hdf5_functions = {mjp::datasets::Open};
