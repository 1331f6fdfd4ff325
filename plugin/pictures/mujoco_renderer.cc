#include "plugin/pictures/mujoco_renderer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/picture_resize.h"
#include "plugin/guard.h"
#include "plugin/pictures/drawing_packer.h"
#include "plugin/pictures/egl_context.h"
#include "plugin/pictures/look.h"
#include "plugin/pictures/render_thread.h"
#include "plugin/pictures/shared_pictures.h"

namespace mjp {
namespace {

constexpr int kLargestPicture = 4096;  // pixels; every OpenGL driver in use draws this
constexpr int kMostGeoms = 1 << 20;    // of a scene

// Makes the process's GL context at first use. Rendering thread only.
const EglContext& CurrentContext(int cuda_device) {
  static const EglContext& context = *new EglContext(cuda_device);
  return context;
}

// Makes pictures of drawings on the GL's side; null where it cannot. Rendering thread only.
const DrawingPacker* CurrentPacker(const EglContext& context) {
  static const auto& packer = *new std::unique_ptr(DrawingPacker::Make(context));
  return packer.get();
}

// Size and number of the pictures the renderer itself draws.
struct Drawing {
  int width, height;
  bool reduce;  // to 96 x 96 by the benchmark's resize
  bool operator==(const Drawing&) const = default;
};

Drawing ChooseDrawing(const mjModel* model, int camera, const PictureRequest& request) {
  const int* resolution = model->cam_resolution + 2 * camera;
  if (request.width == kReducedSize && request.height == kReducedSize &&
      resolution[0] == kDrawingSize && resolution[1] == kDrawingSize) {
    return {kDrawingSize, kDrawingSize, true};
  }
  return {request.width, request.height, false};
}

// Throws Error where the model has no such camera.
int CameraOf(const mjModel* model, const std::string& name) {
  const int camera = mj_name2id(model, mjOBJ_CAMERA, name.c_str());
  if (camera >= 0) return camera;
  std::string known;
  for (int i = 0; i < model->ncam; ++i) {
    const char* each = mj_id2name(model, mjOBJ_CAMERA, i);
    if (each) known += (known.empty() ? "" : ", ") + std::string(each);
  }
  throw BadInput("camera \"" + name + "\" is not in the model; it has " +
                 (known.empty() ? "no named camera" : known));
}

// The same for all policies, whatever the model asks for: MuJoCo's defaults without shadows.
PictureLook LookOf(const Drawing& drawing) {
  PictureLook look;
  look.renderer = "mujoco";
  look.height = drawing.height;
  look.width = drawing.width;
  look.reflections = look.skybox = look.haze = true;
  return look;
}

void Apply(const PictureLook& look, mjvScene& scene) {
  scene.flags[mjRND_SHADOW] = look.shadows;
  scene.flags[mjRND_REFLECTION] = look.reflections;
  scene.flags[mjRND_SKYBOX] = look.skybox;
  scene.flags[mjRND_HAZE] = look.haze;
  scene.flags[mjRND_FOG] = look.fog;
}

// Geoms that a policy's camera does not see: decoration, of this plugin's or another's.
void RemoveDecoration(mjvScene* scene) {
  mjvGeom* end = std::remove_if(scene->geoms, scene->geoms + scene->ngeom,
                                [](const mjvGeom& geom) { return geom.category == mjCAT_DECOR; });
  scene->ngeom = static_cast<int>(end - scene->geoms);
}

class MujocoPictureSource : public PictureSource {
 public:
  MujocoPictureSource(const mjModel* model, const PictureRequest& request) : request_(request) {
    if (request.width < 1 || request.width > kLargestPicture || request.height < 1 ||
        request.height > kLargestPicture) {
      throw BadInput("pictures of " + std::to_string(request.width) + " x " +
                     std::to_string(request.height) + " pixels cannot be drawn; at most " +
                     std::to_string(kLargestPicture) + " both ways");
    }
    for (const std::string& name : request.cameras) AddCamera(model, name);
    mjv_defaultOption(&option_);
    mjv_defaultScene(&scene_);
    mjr_defaultContext(&context_);
    RunOnRenderThread([&] { MakeContext(model); });
    if (WithinCompiler(model)) WarnOfSoftware();
    MakeScene(model, 2 * static_cast<int>(model->ngeom) + 1000);
  }

  ~MujocoPictureSource() override {
    if (HasRenderThread()) {
      RunOnRenderThread([&] {
        FreeContext();
        if (shared_) shared_->Close();
      });
    }
    mjv_freeScene(&scene_);
  }

  std::vector<PictureLook> Looks() const override {
    std::vector<PictureLook> looks;
    for (const Drawing& drawing : drawings_) looks.push_back(LookOf(drawing));
    return looks;
  }

  // What OpenGL has a copy of is made again where it is no longer the model's.
  void Adopt(const mjModel* model) override {
    std::vector<Drawing> drawings;
    for (const int camera : cameras_) drawings.push_back(ChooseDrawing(model, camera, request_));
    if (uploads_ == HashUploads(model) && drawings == drawings_) return;
    RunOnRenderThread([&] {
      FreeContext();
      drawings_ = std::move(drawings);
      MakeContext(model);
    });
  }

  void Render(const mjModel* model, mjData* data, std::span<uint8_t> rgb) override {
    const size_t bytes = PictureBytes();
    if (rgb.size() != bytes * cameras_.size()) {
      throw BadInput("the buffer for pictures has " + std::to_string(rgb.size()) +
                     " bytes; expected " + std::to_string(bytes * cameras_.size()));
    }
    for (size_t i = 0; i < cameras_.size(); ++i) {
      UpdateScene(model, data, cameras_[i]);
      RunOnRenderThread([&] {
        DrawScene(drawings_[i]);
        Fetch(drawings_[i], rgb.data() + i * bytes);
      });
    }
  }

  std::shared_ptr<GpuPicture> RenderOnGpu(const mjModel* model, mjData* data) override {
    if (request_.cuda_device < 0 || cameras_.empty()) return nullptr;
    if (!asked_cuda_) RunOnRenderThread([&] { AskCuda(); });
    if (!shared_) return nullptr;
    std::shared_ptr<SharedPictures::Place> place;
    for (size_t i = 0; i < cameras_.size(); ++i) {
      UpdateScene(model, data, cameras_[i]);
      RunOnRenderThread([&] {
        if (i == 0) place = shared_->Take();
        if (!place) return;
        DrawScene(drawings_[i]);
        packer_->Pack(target_, {request_.width, request_.height, drawings_[i].reduce},
                      place->buffer(), place->first() + i * PictureBytes());
        if (i + 1 == cameras_.size()) packer_->Wait();
      });
      if (!place) return nullptr;
    }
    return place;
  }

 private:
  size_t PictureBytes() const { return size_t{3} * request_.width * request_.height; }

  void AddCamera(const mjModel* model, const std::string& name) {
    const int camera = CameraOf(model, name);
    cameras_.push_back(camera);
    drawings_.push_back(ChooseDrawing(model, camera, request_));
  }

  void MakeScene(const mjModel* model, int geoms) {
    mjv_freeScene(&scene_);
    mjv_makeScene(model, &scene_, geoms);
    scene_.status =
        1;  // the engine would else warn of a full scene, which UpdateScene makes larger
    Apply(LookOf({}), scene_);
  }

  // Rendering thread.
  void MakeContext(const mjModel* model) {
    gl_ = &CurrentContext(request_.cuda_device);
    // the user's model stays as it is: only the sizes of the context's buffers differ
    mjModel sized = *model;
    sized.vis.global.offwidth = sized.vis.global.offheight = 1;
    for (const Drawing& drawing : drawings_) {
      sized.vis.global.offwidth = std::max(sized.vis.global.offwidth, drawing.width);
      sized.vis.global.offheight = std::max(sized.vis.global.offheight, drawing.height);
      raw_.resize(std::max(raw_.size(), static_cast<size_t>(drawing.width) * drawing.height * 3));
    }
    sized.vis.quality.offsamples = 0;  // one sample, as LookOf says
    sized.vis.quality.shadowsize = 0;
    mjr_makeContext(&sized, &context_, mjFONTSCALE_50);
    try {
      if (shared_ || std::ranges::any_of(drawings_, &Drawing::reduce)) UsePacker();
    } catch (...) {
      mjr_freeContext(&context_);
      throw;
    }
    uploads_ = HashUploads(model);
  }

  // Rendering thread. From now on drawings are where the packer reads them, if there is one.
  void UsePacker() {
    if (!packer_) packer_ = CurrentPacker(*gl_);
    if (packer_ && target_ == 0)
      target_ = packer_->MakeTarget(context_.offFBO, context_.offColor, context_.offWidth,
                                    context_.offHeight);
  }

  // Rendering thread.
  void AskCuda() {
    UsePacker();
    std::string why;  // SharedPicturesText tells people
    // OpenGL writes whole words: the next camera's picture must begin with one
    const bool whole = PictureBytes() % 4 == 0 || cameras_.size() == 1;
    const SharedPictures::Contents contents = {cameras_.size() * PictureBytes(),
                                               request_.cuda_device};
    if (packer_ && whole) shared_ = SharedPictures::Make(*gl_, *packer_, contents, &why);
    asked_cuda_ = true;
  }

  // Rendering thread.
  void FreeContext() {
    uploads_.reset();
    if (packer_) packer_->DeleteTarget(std::exchange(target_, 0));
    mjr_freeContext(&context_);
  }

  // Once per compilation, not with every copy of the simulation.
  void WarnOfSoftware() const {
    if (request_.cuda_device < 0 || !gl_->software()) return;
    Warn(("the policy runs on the GPU, but OpenGL draws its pictures on the CPU (" +
          gl_->description() + "): install the GPU's GL driver with EGL, or choose backend \"cpu\"")
             .c_str());
  }

  void UpdateScene(const mjModel* model, mjData* data, int camera) {
    const PolicyPictureScope scope;
    mjvCamera view;
    mjv_defaultCamera(&view);
    view.type = mjCAMERA_FIXED;
    view.fixedcamid = camera;
    const auto update = [&] {
      mjv_updateScene(model, data, &option_, nullptr, &view, mjCAT_STATIC | mjCAT_DYNAMIC, &scene_);
      return scene_.ngeom < scene_.maxgeom;  // a full scene may lack something
    };
    while (!update()) {
      if (scene_.maxgeom > kMostGeoms) {
        throw Unsupported("the scene has more than " + std::to_string(kMostGeoms) +
                          " geoms, maybe by another plugin's decoration");
      }
      MakeScene(model, 2 * scene_.maxgeom);
    }
    RemoveDecoration(&scene_);
  }

  // Rendering thread.
  void DrawScene(const Drawing& drawing) {
    mjr_setBuffer(mjFB_OFFSCREEN, &context_);
    if (context_.currentBuffer != mjFB_OFFSCREEN) {
      throw EnvironmentError("OpenGL has no offscreen buffer; update the GL driver");
    }
    mjr_render({0, 0, drawing.width, drawing.height}, &scene_, &context_);
  }

  // Rendering thread. Brings what was drawn to the host.
  void Fetch(const Drawing& drawing, uint8_t* rgb) {
    if (drawing.reduce && packer_) return packer_->Reduce(target_, rgb);
    const mjrRect viewport = {0, 0, drawing.width, drawing.height};
    mjr_readPixels(raw_.data(), nullptr, viewport, &context_);
    // OpenGL's first row is the bottom one
    const ptrdiff_t row = static_cast<ptrdiff_t>(drawing.width) * 3;
    const uint8_t* top = raw_.data() + row * (drawing.height - 1);
    if (drawing.reduce) {
      ResizeDrawing(top, -row, rgb);
      return;
    }
    for (int y = 0; y < drawing.height; ++y) std::copy_n(top - y * row, row, rgb + y * row);
  }

  PictureRequest request_;
  const EglContext* gl_ = nullptr;
  const DrawingPacker* packer_ = nullptr;
  unsigned target_ = 0;                     // what it reads; 0 without it
  std::shared_ptr<SharedPictures> shared_;  // null: not asked for, or not to be had
  bool asked_cuda_ = false;
  std::optional<uint64_t> uploads_;  // of the model that the context was made for; none: no context
  std::vector<int> cameras_;
  std::vector<Drawing> drawings_;  // of each camera
  std::vector<uint8_t> raw_;       // a drawing as OpenGL gives it
  mjvOption option_;
  mjvScene scene_;
  mjrContext context_;
};

}  // namespace

std::unique_ptr<PictureSource> MakeMujocoPictureSource(const mjModel* model,
                                                       const PictureRequest& request) {
  return std::make_unique<MujocoPictureSource>(model, request);
}

std::vector<PictureLook> MujocoLooks(const mjModel* model, const PictureRequest& request) {
  std::vector<PictureLook> looks;
  for (const std::string& name : request.cameras) {
    looks.push_back(LookOf(ChooseDrawing(model, CameraOf(model, name), request)));
  }
  return looks;
}

std::string MujocoRendererDescription() {
  std::string description;
  RunOnRenderThread([&] { description = CurrentContext(-1).description(); });
  return description;
}

}  // namespace mjp
