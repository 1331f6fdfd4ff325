#include "tasks/pusht/pictures/render_states.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/text_stream.h"
#include "plugin/pictures/picture_source.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {
namespace {

constexpr int kStateSize = 5;

std::vector<State> ParseStates(const NpyArray& array) {
  if (array.shape.size() != 2 || array.shape[1] != kStateSize) {
    mjp::TextWriter shape;
    for (const int64_t n : array.shape) shape << (shape.tellp() > 0 ? ", " : "") << n;
    throw mjp::BadInput("the states have shape (" + shape.str() +
                        "); expected (N, 5): agent x, y, block x, y, angle");
  }
  const std::vector<double> values = array.ToDoubles();
  std::vector<State> states;
  for (size_t i = 0; i < values.size(); i += kStateSize) {
    const double* v = &values[i];
    const double* odd = std::find_if_not(
        v, v + kStateSize, [](double x) { return std::isfinite(static_cast<float>(x)); });
    if (odd != v + kStateSize) {
      mjp::TextWriter number;
      number << *odd;
      throw mjp::BadInput("row " + std::to_string(i / kStateSize) + " of the states has " +
                          number.str() + ", which no picture can show; correct or remove the row");
    }
    states.push_back({v[0], v[1], v[2], v[3], v[4]});
  }
  return states;
}

}  // namespace

NpyArray RenderStates(const NpyArray& states, const std::string& renderer) {
  const ModelPtr model = LoadModel(ModelPath("pusht.xml"));
  const Scene scene(model.get());
  const DataPtr data = MakeData(model.get());
  mjp::PictureRequest request;
  request.cameras = {"top"};
  const auto source = mjp::CreatePictureSource(renderer, model.get(), request);
  const std::vector<State> parsed = ParseStates(states);
  std::vector<uint8_t> rgb(parsed.size() * mjp::kPictureBytes);
  for (size_t i = 0; i < parsed.size(); ++i) {
    scene.ToQpos(parsed[i], data->qpos);
    mj_kinematics(model.get(), data.get());
    mj_camlight(model.get(), data.get());
    source->Render(model.get(), data.get(),
                   std::span(rgb).subspan(i * mjp::kPictureBytes, mjp::kPictureBytes));
  }
  return MakeNpy(rgb,
                 {static_cast<int64_t>(parsed.size()), mjp::kPictureSize, mjp::kPictureSize, 3});
}

}  // namespace mjp::app
