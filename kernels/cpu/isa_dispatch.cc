#include "kernels/cpu/group_norm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/mish.h"
#include "kernels/cpu/product/product.h"
#include "kernels/cpu/transformer/activate.h"
#include "kernels/cpu/transformer/layer_norm.h"
#include "kernels/cpu/transformer/softmax.h"
#include "kernels/cpu/winograd/product.h"
#include "kernels/cpu/winograd/transform.h"

// Chooses, at run time, among the copies of the kernels that were compiled per instruction set.

#ifdef MJP_X86
#define MJP_DISPATCH(result, name, parameters, arguments) \
  namespace unfused {                                     \
  result name parameters;                                 \
  }                                                       \
  namespace baseline {                                    \
  result name parameters;                                 \
  }                                                       \
  namespace avx2 {                                        \
  result name parameters;                                 \
  }                                                       \
  namespace avx512 {                                      \
  result name parameters;                                 \
  }                                                       \
  result name parameters {                                \
    switch (ActiveIsa()) {                                \
      case Isa::kAvx512:                                  \
        return avx512::name arguments;                    \
      case Isa::kAvx2:                                    \
        return avx2::name arguments;                      \
      case Isa::kUnfused:                                 \
        return unfused::name arguments;                   \
      case Isa::kBaseline:                                \
        break;                                            \
    }                                                     \
    return baseline::name arguments;                      \
  }
#else
#define MJP_DISPATCH(result, name, parameters, arguments) \
  namespace baseline {                                    \
  result name parameters;                                 \
  }                                                       \
  result name parameters { return baseline::name arguments; }
#endif

namespace mjp::cpu {

MJP_DISPATCH(int, PanelChannels, (), ())
MJP_DISPATCH(void, Product, (const ProductArgs& args, const Block& block), (args, block))
MJP_DISPATCH(void, Normalize, (const GroupNormArgs& args, const Block& block), (args, block))
MJP_DISPATCH(void, Mish, (const float* x, int64_t size, float* y), (x, size, y))
MJP_DISPATCH(void, Activate, (TokenActivation activation, const float* x, int64_t size, float* y),
             (activation, x, size, y))
MJP_DISPATCH(void, LayerNorm, (const LayerNormArgs& args, int row_begin, int row_end),
             (args, row_begin, row_end))
MJP_DISPATCH(void, AddResidual, (const ResidualArgs& args, int row_begin, int row_end),
             (args, row_begin, row_end))
MJP_DISPATCH(void, Softmax, (float* x, int size, float scale), (x, size, scale))
MJP_DISPATCH(void, WinogradInput,
             (const float* const* x, int channels, float* values, int64_t stride),
             (x, channels, values, stride))
MJP_DISPATCH(void, WinogradProduct, (const WinogradProductArgs& args), (args))
MJP_DISPATCH(void, WinogradOutput, (const WinogradOutputArgs& args), (args))

}  // namespace mjp::cpu
