#include "kernels/cuda/primitives/tensor_map.h"

#include <string>

#include "base/error.h"
#include "kernels/cuda/primitives/driver_function.h"

namespace mjp {
namespace {

using Encode = decltype(cuTensorMapEncodeTiled);

Encode* FindEncode() {
  Encode* encode = nullptr;
  if (FindDriverFunction("cuTensorMapEncodeTiled", encode)) return encode;
  throw EnvironmentError(
      "the NVIDIA driver describes no tensors for Hopper's copies (cuTensorMapEncodeTiled); "
      "install a driver of CUDA 12 or later");
}

}  // namespace

CUtensorMap MakeTensorMap(Format format, const TensorBlocks& blocks) {
  static Encode* const encode = FindEncode();
  constexpr uint32_t kRank = 4;
  const uint32_t every[kRank] = {1, 1, 1, 1};
  uint64_t pitch[kRank - 1];  // bytes from one to the next, of each dimension but the innermost
  uint64_t bytes = FormatBytes(format);
  for (uint32_t d = 0; d + 1 < kRank; ++d) pitch[d] = bytes *= blocks.size[d];
  CUtensorMap map;
  const CUresult status = encode(
      &map,
      format == Format::kFp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      kRank, const_cast<void*>(blocks.data), blocks.size.data(), pitch, blocks.extent.data(), every,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return map;
  throw EnvironmentError("the NVIDIA driver refused a tensor's description (error " +
                         std::to_string(status) + ")");
}

}  // namespace mjp
