#include "kernels/group_norm.h"
#include "kernels/isa.h"
#include "kernels/mish.h"
#include "kernels/product.h"

// Chooses, at run time, among the copies of the kernels that were compiled per instruction set.

#ifdef DP_X86
#define DP_DISPATCH(result, name, parameters, arguments) \
  namespace baseline {                                   \
  result name parameters;                                \
  }                                                      \
  namespace avx2 {                                       \
  result name parameters;                                \
  }                                                      \
  namespace avx512 {                                     \
  result name parameters;                                \
  }                                                      \
  result name parameters {                               \
    switch (ActiveIsa()) {                               \
      case Isa::kAvx512:                                 \
        return avx512::name arguments;                   \
      case Isa::kAvx2:                                   \
        return avx2::name arguments;                     \
      case Isa::kBaseline:                               \
        break;                                           \
    }                                                    \
    return baseline::name arguments;                     \
  }
#else
#define DP_DISPATCH(result, name, parameters, arguments) \
  namespace baseline {                                   \
  result name parameters;                                \
  }                                                      \
  result name parameters { return baseline::name arguments; }
#endif

namespace dp::cpu {

DP_DISPATCH(int, PanelChannels, (), ())
DP_DISPATCH(void, Product, (const ProductArgs& args, const Block& block), (args, block))
DP_DISPATCH(void, Normalize, (const GroupNormArgs& args, const Block& block), (args, block))
DP_DISPATCH(void, Mish, (const float* x, int64_t size, float* y), (x, size, y))

}  // namespace dp::cpu
