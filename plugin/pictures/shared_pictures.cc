#include "plugin/pictures/shared_pictures.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/fork.h"

#ifdef MJPOLICY_HAVE_CUDA
#include <cuda.h>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/driver_function.h"
#endif

namespace mjp {
namespace {

constexpr const char* kTestVariable = "MJPOLICY_TEST_HOST_PICTURES";
constexpr size_t kAlignment = 256;  // of a place

bool TestsWantNone() {
  if (std::getenv(kTestVariable) == nullptr) return false;
#ifdef MJPOLICY_TEST_SEAMS
  return true;
#else
  throw EnvironmentError(std::string(kTestVariable) +
                         " is set, and only a build for tests reads it: unset it");
#endif
}

// What stands in the way before CUDA is asked; "" for nothing.
std::string Obstacle(const EglContext& context, int device) {
  if (TestsWantNone()) return std::string(kTestVariable) + " is set";
  if (context.software()) return "OpenGL draws on the CPU";
  if (device < 0 || context.cuda_device() != device) return "OpenGL draws on another GPU";
  return "";
}

}  // namespace

#ifdef MJPOLICY_HAVE_CUDA

namespace {

// The functions of the driver, which this project is not linked with.
struct Driver {
  decltype(&cuMemGetAllocationGranularity) MemGetAllocationGranularity;
  decltype(&cuMemCreate) MemCreate;
  decltype(&cuMemRelease) MemRelease;
  decltype(&cuMemExportToShareableHandle) MemExportToShareableHandle;
  decltype(&cuMemAddressReserve) MemAddressReserve;
  decltype(&cuMemAddressFree) MemAddressFree;
  decltype(&cuMemMap) MemMap;
  decltype(&cuMemUnmap) MemUnmap;
  decltype(&cuMemSetAccess) MemSetAccess;
};

// False where the driver lacks one.
bool FindAll(Driver& driver) {
  return FindDriverFunction("cuMemGetAllocationGranularity", driver.MemGetAllocationGranularity) &&
         FindDriverFunction("cuMemCreate", driver.MemCreate) &&
         FindDriverFunction("cuMemRelease", driver.MemRelease) &&
         FindDriverFunction("cuMemExportToShareableHandle", driver.MemExportToShareableHandle) &&
         FindDriverFunction("cuMemAddressReserve", driver.MemAddressReserve) &&
         FindDriverFunction("cuMemAddressFree", driver.MemAddressFree) &&
         FindDriverFunction("cuMemMap", driver.MemMap) &&
         FindDriverFunction("cuMemUnmap", driver.MemUnmap) &&
         FindDriverFunction("cuMemSetAccess", driver.MemSetAccess);
}

}  // namespace

// Memory of the current GPU that a file descriptor stands for. Gives back what it has, however far
// its making came.
class SharedPictures::Memory {
 public:
  // Null where the driver refuses, and `why` says what.
  static std::unique_ptr<Memory> Make(size_t bytes, int device, std::string* why) {
    std::unique_ptr<Memory> made(new Memory);
    if (!FindAll(made->driver_)) {
      *why = "the NVIDIA driver is too old";
      return nullptr;
    }
    const CUresult status = made->Allocate(bytes, device);
    if (status == CUDA_SUCCESS) return made;
    *why = "CUDA shares no memory (error " + std::to_string(status) + ")";
    return nullptr;
  }
  ~Memory() {
    if (mapped_) driver_.MemUnmap(address_, size_);
    if (address_ != 0) driver_.MemAddressFree(address_, size_);
    if (handle_ != 0) driver_.MemRelease(handle_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int descriptor() const { return descriptor_; }  // whoever imports it closes it
  size_t size() const { return size_; }
  const uint8_t* data() const {
    return reinterpret_cast<const uint8_t*>(address_);  // NOLINT(performance-no-int-to-ptr)
  }

 private:
  Memory() = default;

  CUresult Allocate(size_t bytes, int device) {
    CUmemAllocationProp kind = {};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    kind.location.id = device;
    kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    size_t unit = 0;
    CUresult status =
        driver_.MemGetAllocationGranularity(&unit, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (status != CUDA_SUCCESS) return status;
    size_ = (bytes + unit - 1) / unit * unit;
    status = driver_.MemCreate(&handle_, size_, &kind, 0);
    if (status == CUDA_SUCCESS) status = driver_.MemAddressReserve(&address_, size_, 0, 0, 0);
    if (status == CUDA_SUCCESS) status = driver_.MemMap(address_, size_, 0, handle_, 0);
    mapped_ = status == CUDA_SUCCESS;
    const CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (status == CUDA_SUCCESS) status = driver_.MemSetAccess(address_, size_, &access, 1);
    if (status == CUDA_SUCCESS) {
      status = driver_.MemExportToShareableHandle(&descriptor_, handle_,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    }
    return status;
  }

  Driver driver_ = {};
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  size_t size_ = 0;
  bool mapped_ = false;
  int descriptor_ = -1;
};

namespace {

// Begins CUDA on this thread; "" or what is in the way.
std::string BeginCuda(int device) {
  const cudaError_t status = cudaSetDevice(device);
  if (status == cudaSuccess) return "";
  static_cast<void>(cudaGetLastError());  // said here, not to whoever calls CUDA next
  return cudaGetErrorString(status);
}

void CopyToHost(void* to, const void* from, size_t bytes) {
  CheckCuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy of a picture to the host");
}

}  // namespace

#else

class SharedPictures::Memory {
 public:
  static std::unique_ptr<Memory> Make(size_t, int, std::string*) { return nullptr; }
  int descriptor() const { return -1; }
  size_t size() const { return 0; }
  const uint8_t* data() const { return nullptr; }
};

namespace {
std::string BeginCuda(int) { return "this build has no CUDA"; }
void CopyToHost(void*, const void*, size_t) {}
}  // namespace

#endif

SharedPictures::Place::Place(std::shared_ptr<SharedPictures> owner, size_t number)
    : GpuPicture(owner->SlabOf(number).memory->data() + number % kPlaces * owner->stride(),
                 owner->contents_.bytes, owner->contents_.device),
      owner_(std::move(owner)),
      number_(number) {}

SharedPictures::Place::~Place() {
  if (owner_->generation_ != ForkGeneration()) return;  // a parent's thread may have the mutex
  const std::lock_guard lock(owner_->mutex_);
  owner_->idle_.push_back(number_);
}

unsigned SharedPictures::Place::buffer() const { return owner_->SlabOf(number_).imported.buffer; }
size_t SharedPictures::Place::first() const { return number_ % kPlaces * owner_->stride(); }

void SharedPictures::Place::Download(std::span<uint8_t> rgb) const {
  if (rgb.size() != bytes()) {
    throw BadInput("a picture of " + std::to_string(bytes()) + " bytes does not fit into " +
                   std::to_string(rgb.size()));
  }
  CopyToHost(rgb.data(), data(), bytes());
}

SharedPictures::SharedPictures(const DrawingPacker& packer, const Contents& contents)
    : packer_(packer), contents_(contents), generation_(ForkGeneration()) {}

std::shared_ptr<SharedPictures> SharedPictures::Make(const EglContext& context,
                                                     const DrawingPacker& packer,
                                                     const Contents& contents, std::string* why) {
  *why = Obstacle(context, contents.device);
  if (why->empty()) *why = BeginCuda(contents.device);
  if (!why->empty()) return nullptr;
  std::shared_ptr<SharedPictures> made(new SharedPictures(packer, contents));
  return made->AddSlab(why) ? made : nullptr;
}

SharedPictures::~SharedPictures() {
  if (generation_ == ForkGeneration()) return;
  for (Slab& slab : slabs_) static_cast<void>(slab.memory.release());  // a parent's
}

void SharedPictures::Close() {
  for (const Slab& slab : slabs_) packer_.Forget(slab.imported);
}

size_t SharedPictures::stride() const {
  return (contents_.bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A driver may keep what it writes in a form of its own, in which a picture would be wrong without
// an error.
bool SharedPictures::ReadsWhatIsWritten(const Slab& slab) const {
  std::vector<uint8_t> written(std::min<size_t>(slab.memory->size(), 1 << 16)),
      read(written.size());
  for (size_t i = 0; i < written.size(); ++i) written[i] = static_cast<uint8_t>(i * 167 + i / 251);
  packer_.Write(slab.imported.buffer, written);
  packer_.Wait();
  CopyToHost(read.data(), slab.memory->data(), read.size());
  return read == written;
}

bool SharedPictures::AddSlab(std::string* why) {
  Slab slab;
  slab.memory = Memory::Make(kPlaces * stride(), contents_.device, why);
  if (!slab.memory) return false;
  slab.imported = packer_.Import(slab.memory->descriptor(), slab.memory->size());
  if (slab.imported.buffer == 0) {
    *why = "OpenGL does not take CUDA's memory";
    return false;
  }
  bool reads = false;
  try {
    reads = ReadsWhatIsWritten(slab);
  } catch (const Error& error) {
    *why = error.what();
  }
  if (!reads) {
    packer_.Forget(slab.imported);
    if (why->empty()) *why = "CUDA does not read what OpenGL writes";
    return false;
  }
  const std::lock_guard lock(mutex_);
  const size_t first = slabs_.size() * kPlaces;
  idle_.reserve(first + kPlaces);  // room for all, so that a place comes back without an allocation
  slabs_.push_back(std::move(slab));
  for (size_t i = 0; i < kPlaces; ++i) idle_.push_back(first + i);
  return true;
}

std::shared_ptr<SharedPictures::Place> SharedPictures::Take() {
  std::unique_lock lock(mutex_);
  if (idle_.empty()) {
    lock.unlock();
    std::string why;  // the host's way remains
    if (!AddSlab(&why)) return nullptr;
    lock.lock();
  }
  const size_t number = idle_.back();
  idle_.pop_back();
  lock.unlock();
  return std::make_shared<Place>(shared_from_this(), number);
}

std::string SharedPicturesText(const EglContext& context) {
  std::string why = "OpenGL is too old";
  const std::unique_ptr<DrawingPacker> packer = DrawingPacker::Make(context);
  std::shared_ptr<SharedPictures> shared;
  if (packer) shared = SharedPictures::Make(context, *packer, {4, context.cuda_device()}, &why);
  if (shared) {
    shared->Close();
    return "CUDA takes its pictures where they are";
  }
  return "its pictures come to a policy by way of the host: " + why;
}

}  // namespace mjp
