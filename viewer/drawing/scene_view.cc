#include "viewer/drawing/scene_view.h"

#include <GL/gl.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/physics/state.h"
#include "viewer/drawing/changes.h"

namespace mjp::app {
namespace {

constexpr int kMostGeoms = 2000;
constexpr int kSamples = 4;              // of a pixel whose edges are smooth
constexpr int kTrail = 5;                // denoising steps drawn before the one shown
constexpr double kOverlayHeight = 0.35;  // units above the table
constexpr double kMiddle = kWorldSize / 2 / kPixelsPerUnit;

// A place on the table, benchmark pixels, as a point of the world: the table's y points down.
void ToWorld(const float* pixel, mjtNum* point) {
  point[0] = pixel[0] / kPixelsPerUnit;
  point[1] = (kWorldSize - pixel[1]) / kPixelsPerUnit;
  point[2] = kOverlayHeight;
}

bool OnCpu() {
  const std::string renderer = reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  return renderer.find("llvmpipe") != std::string::npos ||
         renderer.find("softpipe") != std::string::npos;
}

// For drawing alone. Shares everything with `model`, which must outlive it.
mjModel WithoutPlugins(const mjModel& model) {
  mjModel bare = model;
  bare.vis.quality.offsamples = kSamples;  // buffers with samples and without can be had then
  bare.nplugin = 0;
  bare.npluginstate = 0;
  return bare;
}

bool HasSky(const mjModel& model) {
  return std::find(model.tex_type, model.tex_type + model.ntex, mjTEXTURE_SKYBOX) !=
         model.tex_type + model.ntex;
}

// Fills what nothing was drawn on with the theme's background, lighter at the top.
void DrawBackdrop(mjrRect area) {
  GLfloat far = 1;
  glGetFloatv(GL_DEPTH_CLEAR_VALUE, &far);
  glPushAttrib(GL_ALL_ATTRIB_BITS);
  for (const GLenum feature : {GL_LIGHTING, GL_CULL_FACE, GL_TEXTURE_2D, GL_BLEND, GL_FOG}) {
    glDisable(feature);
  }
  glEnable(GL_DEPTH_TEST);
  glDepthFunc(GL_EQUAL);
  glDepthRange(far, far);
  glDepthMask(GL_FALSE);
  glPolygonMode(GL_FRONT_AND_BACK, GL_FILL);
  glShadeModel(GL_SMOOTH);
  glViewport(area.left, area.bottom, area.width, area.height);
  for (const GLenum matrix : {GL_PROJECTION, GL_MODELVIEW}) {
    glMatrixMode(matrix);
    glPushMatrix();
    glLoadIdentity();
  }
  glBegin(GL_QUADS);
  glColor3ub(18, 21, 28);
  glVertex2f(-1, -1);
  glVertex2f(1, -1);
  glColor3ub(46, 53, 67);
  glVertex2f(1, 1);
  glVertex2f(-1, 1);
  glEnd();
  for (const GLenum matrix : {GL_PROJECTION, GL_MODELVIEW}) {
    glMatrixMode(matrix);
    glPopMatrix();
  }
  glPopAttrib();
}

bool SeenFromAbove(const mjModel* model) { return mj_name2id(model, mjOBJ_JOINT, "bt") >= 0; }

}  // namespace

SceneView::SceneView(std::shared_ptr<const mjModel> model)
    : model_(std::move(model)),
      bare_(WithoutPlugins(*model_)),
      data_(MakeData(&bare_)),
      on_cpu_(OnCpu()) {
  mjv_defaultScene(&scene_);
  mjv_defaultOption(&option_);
  mjv_defaultPerturb(&perturb_);
  mjv_defaultCamera(&camera_);
  mjr_defaultContext(&context_);
  mjv_makeScene(&bare_, &scene_, kMostGeoms);
  mjr_makeContext(&bare_, &context_, mjFONTSCALE_100);
  NextCamera(0);
}

SceneView::~SceneView() {
  mjr_freeContext(&context_);
  mjv_freeScene(&scene_);
}

void SceneView::Fit(double aspect) {
  const double fit = std::max(1.0, 1 / aspect);
  camera_.distance *= fit / fitted_;
  fitted_ = fit;
}

void SceneView::NextCamera(int direction) {
  if (direction == 0) {
    mjv_defaultFreeCamera(&bare_, &camera_);
    if (SeenFromAbove(&bare_)) {
      camera_.orthographic = 0;
      camera_.lookat[0] = camera_.lookat[1] = kMiddle;
      camera_.lookat[2] = 0;
      camera_.azimuth = 90;
      camera_.elevation = -90;
      camera_.distance = 1.28 * 2 * kMiddle;
    }
    camera_.distance *= fitted_;
    return;
  }
  const int count = bare_.ncam + 1;
  const int now = camera_.type == mjCAMERA_FIXED ? camera_.fixedcamid + 1 : 0;
  const int next = (now + direction + count) % count;
  if (next == 0) return NextCamera(0);
  camera_.type = mjCAMERA_FIXED;
  camera_.fixedcamid = next - 1;
}

void SceneView::AddChunk(const float* chunk, int first, int last, const float rgba[4],
                         double radius) {
  for (int i = first; i + 1 < last && scene_.ngeom + 1 < scene_.maxgeom; ++i) {
    mjtNum from[3], to[3];
    ToWorld(chunk + 2 * i, from);
    ToWorld(chunk + 2 * (i + 1), to);
    mjvGeom& geom = scene_.geoms[scene_.ngeom++];
    mjv_initGeom(&geom, mjGEOM_CAPSULE, nullptr, nullptr, nullptr, rgba);
    mjv_connector(&geom, mjGEOM_CAPSULE, radius, from, to);
    geom.emission = 0.7f;  // the scene has no light
    geom.category = mjCAT_DECOR;
  }
}

void SceneView::AddDecision(const SimSnapshot& snapshot, const UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  if (!shown || shown->seed != snapshot.seed) return;
  const int horizon = snapshot.policy->horizon;
  const size_t size = 2 * static_cast<size_t>(horizon);
  const int steps = static_cast<int>(shown->denoising.size() / size);
  if (ui.show_denoising && steps > 0) {
    const int end = ui.denoising_step < 0 ? steps - 1 : std::min(steps - 1, ui.denoising_step);
    for (int k = std::max(0, end - kTrail); k <= end; ++k) {
      const float share = 1 - static_cast<float>(end - k) / (kTrail + 1);
      const float rgba[4] = {0.65f - 0.35f * share, 0.3f + 0.2f * share, 1,
                             0.05f + 0.5f * share * share};
      AddChunk(&shown->denoising[k * size], 0, horizon, rgba, 0.01);
    }
  }
  if (!ui.show_chunk) return;
  const int last = shown->first_action + shown->count;
  const float rest[4] = {0.95f, 0.55f, 0.2f, 0.45f}, executed[4] = {0.95f, 0.35f, 0.15f, 1};
  AddChunk(shown->actions.data(), last - 1, horizon, rest, 0.018);
  AddChunk(shown->actions.data(), shown->first_action, last, executed, 0.03);
}

// That of the chosen decision while the simulation stands still, else the newest.
void SceneView::SetPose(const SimSnapshot& snapshot, const UiState& ui) {
  const bool past = ui.selected && !snapshot.playing && ui.selected->seed == snapshot.seed;
  const std::vector<double>& qpos = past ? ui.selected->qpos : snapshot.qpos;
  if (static_cast<int>(qpos.size()) == bare_.nq) {
    std::copy(qpos.begin(), qpos.end(), data_->qpos);
    std::copy(snapshot.mocap_pos.begin(), snapshot.mocap_pos.end(), data_->mocap_pos);
    std::copy(snapshot.mocap_quat.begin(), snapshot.mocap_quat.end(), data_->mocap_quat);
  }
  mj_kinematics(&bare_, data_.get());
  mj_comPos(&bare_, data_.get());
  mj_camlight(&bare_, data_.get());
  mj_flex(&bare_, data_.get());
  mj_tendon(&bare_, data_.get());
}

// Geoms of the groups 3 to 5; in a model that has no light, which its visual geoms do without, by
// one at the camera.
void SceneView::ShowHidden(bool hidden) {
  std::fill(option_.geomgroup + 3, option_.geomgroup + mjNGROUP, hidden);
  bare_.vis.headlight = model_->vis.headlight;
  if (!hidden || bare_.nlight > 0 || bare_.vis.headlight.active) return;
  bare_.vis.headlight.active = 1;
  std::fill_n(bare_.vis.headlight.ambient, 3, 0.1f);
  std::fill_n(bare_.vis.headlight.diffuse, 3, 0.9f);
}

// Where the hand that a person drives is to go.
void SceneView::AddTarget(const RecordingState& recording) {
  if (recording.dragged.empty() || scene_.ngeom >= scene_.maxgeom) return;
  const mjtNum radius = 0.012 * bare_.stat.extent;
  const mjtNum size[3] = {radius, radius, radius};
  const float rgba[4] = {0.25f, 0.85f, 0.45f, 0.6f};
  mjvGeom& geom = scene_.geoms[scene_.ngeom++];
  mjv_initGeom(&geom, mjGEOM_SPHERE, size, recording.target.data(), nullptr, rgba);
  geom.emission = 0.6f;
  geom.category = mjCAT_DECOR;
}

void SceneView::Update(const SimSnapshot& snapshot, const UiState& ui) {
  SetPose(snapshot, ui);
  ShowHidden(ui.show_hidden);
  mjv_updateScene(&bare_, data_.get(), &option_, &perturb_, &camera_, mjCAT_ALL, &scene_);
  if (snapshot.policy->on_table) AddDecision(snapshot, ui);
  if (snapshot.recording) AddTarget(*snapshot.recording);
  if (ui.show_chunk) {
    for (const mjvGeom& geom : snapshot.decoration) {
      if (scene_.ngeom < scene_.maxgeom) scene_.geoms[scene_.ngeom++] = geom;
    }
  }
}

uint64_t SceneView::Look() const {
  // of a geom what is before the renderer's own fields
  constexpr size_t kGeom = offsetof(mjvGeom, label) + sizeof(mjvGeom::label);
  uint64_t look = 0;
  for (int i = 0; i < scene_.ngeom; ++i) look = LookOf(&scene_.geoms[i], kGeom, look);
  look = LookOf(scene_.lights, sizeof(mjvLight) * static_cast<size_t>(scene_.nlight), look);
  look = LookOf(scene_.camera, sizeof(scene_.camera), look);
  look = LookOf(scene_.flags, sizeof(scene_.flags), look);
  // what bends is drawn by its vertices
  look =
      LookOf(data_->flexvert_xpos, sizeof(mjtNum) * 3 * static_cast<size_t>(bare_.nflexvert), look);
  if (bare_.nskin == 0) return look;
  look = LookOf(data_->xpos, sizeof(mjtNum) * 3 * static_cast<size_t>(bare_.nbody), look);
  return LookOf(data_->xquat, sizeof(mjtNum) * 4 * static_cast<size_t>(bare_.nbody), look);
}

void SceneView::Draw(int width, int height, bool smooth) {
  const int samples = smooth ? kSamples : 0;
  if (samples != samples_) {
    samples_ = context_.offSamples = samples;
    context_.offWidth = 0;  // a buffer of another kind
  }
  mjr_resizeOffscreen(width, height, &context_);
  mjr_setBuffer(mjFB_OFFSCREEN, &context_);
  const mjrRect area = {0, 0, width, height};
  mjr_render(area, &scene_, &context_);
  if (!HasSky(bare_)) DrawBackdrop(area);
}

void SceneView::MoveCamera(int action, double dx, double dy) {
  mjv_moveCamera(&bare_, action, dx, dy, &camera_);
}

double SceneView::Heading() const {
  const mjvGLCamera& eye = scene_.camera[0];
  return std::atan2(eye.forward[2] * eye.up[0] - eye.forward[0] * eye.up[2],
                    eye.forward[1] * eye.up[2] - eye.forward[2] * eye.up[1]);
}

std::array<double, 3> SceneView::Drag(const std::array<double, 3>& place, double dx, double dy,
                                      bool away) const {
  const mjvGLCamera& eye = scene_.camera[0];
  double distance = 0;
  for (int k = 0; k < 3; ++k) distance += eye.forward[k] * (place[k] - eye.pos[k]);
  const double height = (eye.frustum_top - eye.frustum_bottom) *
                        (eye.orthographic ? 1 : std::max(0.0, distance) / eye.frustum_near);
  const double c = std::cos(Heading()), s = std::sin(Heading());
  const double right = dx * height, other = -dy * height;
  if (away) return {c * right - s * other, s * right + c * other, 0};
  return {c * right, s * right, other};
}

std::array<double, 3> SceneView::Push(const std::array<double, 3>& place, double notches) const {
  constexpr double kShare = 0.02;  // of the way from the eye
  const mjvGLCamera& eye = scene_.camera[0];
  double distance = 0;
  for (int k = 0; k < 3; ++k) distance += eye.forward[k] * (place[k] - eye.pos[k]);
  const double by = kShare * std::max(0.0, distance) * notches;
  return {by * eye.forward[0], by * eye.forward[1], by * eye.forward[2]};
}

void SceneView::Zoom(double notches) { MoveCamera(mjMOUSE_ZOOM, 0, -0.05 * notches); }

void SceneView::Select(double aspect, double x, double y) {
  mjtNum point[3];
  int geom = -1, flex = -1, skin = -1;
  const int body =
      mjv_select(&bare_, data_.get(), &option_, aspect, x, y, &scene_, point, &geom, &flex, &skin);
  perturb_.select = std::max(0, body);
  if (body <= 0) return;
  mjtNum offset[3];
  mju_sub3(offset, point, data_->xpos + 3 * body);
  mju_mulMatTVec(perturb_.localpos, data_->xmat + 9 * body, offset, 3, 3);
}

PerturbCommand SceneView::Perturbation() const {
  PerturbCommand command;
  command.body = perturb_.select;
  command.active = perturb_.active;
  std::copy_n(perturb_.refselpos, 3, command.position.begin());
  std::copy_n(perturb_.localpos, 3, command.local.begin());
  std::copy_n(perturb_.refquat, 4, command.rotation.begin());
  command.mass = perturb_.localmass;
  return command;
}

PerturbCommand SceneView::BeginPerturb(bool translate) {
  if (perturb_.select > 0) {
    // the inertia at the point needs more of the pose than drawing does
    mj_fwdPosition(&bare_, data_.get());
    mjv_initPerturb(&bare_, data_.get(), &scene_, &perturb_);
    perturb_.active = translate ? mjPERT_TRANSLATE : mjPERT_ROTATE;
  }
  return Perturbation();
}

PerturbCommand SceneView::MovePerturb(int action, double dx, double dy) {
  mjv_movePerturb(&bare_, data_.get(), action, dx, dy, &scene_, &perturb_);
  return Perturbation();
}

PerturbCommand SceneView::EndPerturb() {
  perturb_.active = 0;
  return PerturbCommand();
}

}  // namespace mjp::app
