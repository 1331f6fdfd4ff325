#include "viewer/viewer.h"

#include <GL/gl.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/folders.h"
#include "tasks/recording/png.h"
#include "tasks/results/results_folder.h"
#include "viewer/export.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

constexpr int kFilmRate = 30;  // pictures per second

std::string EpisodesFile(const std::string& folder) { return folder + "/episodes.jsonl"; }

std::vector<EpisodeRow> ReadRows(const std::string& folder) {
  std::vector<EpisodeRow> rows;
  for (const EpisodeResult& e : ReadEpisodes(EpisodesFile(folder), true)) {
    rows.push_back({e.seed, e.success(), e.max_reward, e.steps, e.hash});
  }
  return rows;
}

}  // namespace

Viewer::Viewer(const ViewerOptions& options, bool offscreen)
    : scale_(options.scale), budget_given_(options.budget_ms > 0) {
  simulation_ = std::make_unique<SimulationThread>(OpenSimulation(options));
  if (offscreen) offscreen_ = {0, 0, options.width, options.height};
  ui_.budget_ms = options.budget_ms;
  MakeView(*simulation_->snapshot());
  if (!options.episodes.empty()) {
    if (!std::filesystem::exists(EpisodesFile(options.episodes))) {
      throw mjp::BadInput(options.episodes + " is not the folder of an evaluation: there is no " +
                          "episodes.jsonl, which 'mjpolicy evaluate --out' writes");
    }
    ui_.episodes = ReadRows(options.episodes);
  }
  ImGui::GetIO().IniFilename = nullptr;
  ApplyTheme(scale_);
  ImGui_ImplOpenGL3_Init("#version 130");
}

Viewer::~Viewer() {
  if (video_) video_->Close();
  glDeleteTextures(static_cast<GLsizei>(textures_.size()), textures_.data());
  ImGui_ImplOpenGL3_Shutdown();
}

void Viewer::MakeView(const SimSnapshot& snapshot) {
  view_ = nullptr;  // one at a time has the framebuffer
  view_ = std::make_unique<SceneView>(snapshot.model, offscreen_.width, offscreen_.height);
  if (!budget_given_) ui_.budget_ms = 1e3 * snapshot.period;
}

void Viewer::UploadPictures(const SimSnapshot& snapshot) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui_);
  if (!shown || shown == uploaded_) return;
  uploaded_ = shown;
  const int width = snapshot.policy->picture_width, height = snapshot.policy->picture_height;
  const size_t bytes = size_t{3} * width * height;
  const std::vector<uint8_t> pictures = PicturesOf(*shown);
  const size_t count = bytes == 0 ? 0 : pictures.size() / bytes;
  while (textures_.size() < count) {
    GLuint texture = 0;
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    textures_.push_back(texture);
  }
  ui_.pictures.clear();
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  for (size_t i = 0; i < count; ++i) {
    glBindTexture(GL_TEXTURE_2D, textures_[i]);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB, width, height, 0, GL_RGB, GL_UNSIGNED_BYTE,
                 &pictures[i * bytes]);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): Dear ImGui names a texture by a pointer
    ui_.pictures.push_back(reinterpret_cast<ImTextureID>(static_cast<intptr_t>(textures_[i])));
  }
}

void Viewer::Frame(int width, int height) {
  width_ = width;
  height_ = height;
  const std::shared_ptr<const SimSnapshot> snapshot = simulation_->snapshot();
  const double begin = mjp::Now();
  if (snapshot->model.get() != view_->model()) {
    ui_.selected = nullptr;
    MakeView(*snapshot);
  }
  UploadPictures(*snapshot);
  ImGui_ImplOpenGL3_NewFrame();
  const double uploaded = mjp::Now();
  ImGui::NewFrame();
  scene_area_ = DrawPanels(*snapshot, ui_, scale_);
  HandleSceneMouse();
  ImGui::Render();
  const double panels = mjp::Now();
  view_->Update(*snapshot, ui_);
  const double scene = mjp::Now();
  const Area& a = scene_area_;
  const mjrRect area = {static_cast<int>(a.x), height - static_cast<int>(a.y + a.height),
                        static_cast<int>(a.width), static_cast<int>(a.height)};
  view_->Draw({0, 0, width, height}, area);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  times_ = {1e3 * (panels - uploaded), 1e3 * (scene - panels),
            1e3 * (uploaded - begin + mjp::Now() - scene)};
  ui_.ui_ms += 0.05 * (times_.panels + times_.scene - ui_.ui_ms);
  for (Command& command : ui_.commands) simulation_->Send(std::move(command));
  ui_.commands.clear();
  if (ui_.export_format != ExportFormat::kNone) Export(*snapshot);
  if (video_) Record();
  ForgetNotice();
}

void Viewer::ForgetNotice() {
  constexpr double kShown = 8;  // seconds
  if (ui_.notice != notice_) {
    notice_ = ui_.notice;
    noticed_ = mjp::Now();
  } else if (mjp::Now() - noticed_ > kShown) {
    ui_.notice.clear();
  }
}

void Viewer::OffscreenFrame(int width, int height) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
  io.DeltaTime = 1.0f / 60;
  Frame(width, height);
}

void Viewer::HandleSceneMouse() {
  const ImGuiIO& io = ImGui::GetIO();
  if (view_->perturbing() && !io.KeyCtrl) ui_.Ask(view_->EndPerturb());
  if (io.WantCaptureMouse || !scene_area_.Contains(io.MousePos) || scene_area_.height <= 0) return;
  const Area& a = scene_area_;
  if (io.MouseWheel != 0) view_->Zoom(io.MouseWheel);
  if (ImGui::IsMouseDoubleClicked(0)) {
    view_->Select(a.width / a.height, (io.MousePos.x - a.x) / a.width,
                  1 - (io.MousePos.y - a.y) / a.height);
  }
  const bool left = ImGui::IsMouseDown(0), right = ImGui::IsMouseDown(1);
  const double dx = io.MouseDelta.x / a.height, dy = io.MouseDelta.y / a.height;
  if (view_->perturbing() && !left && !right) ui_.Ask(view_->EndPerturb());
  if (!left && !right) return;
  if (io.KeyCtrl) return HandlePerturb(right, dx, dy);
  if (dx == 0 && dy == 0) return;
  const int turn = io.KeyShift ? mjMOUSE_ROTATE_H : mjMOUSE_ROTATE_V;
  const int move = io.KeyShift ? mjMOUSE_MOVE_H : mjMOUSE_MOVE_V;
  view_->MoveCamera(right ? move : turn, dx, dy);
}

void Viewer::HandlePerturb(bool translate, double dx, double dy) {
  if (!view_->perturbing()) {
    ui_.Ask(view_->BeginPerturb(translate));
  } else if (dx != 0 || dy != 0) {
    const int action = translate ? mjMOUSE_MOVE_H : mjMOUSE_ROTATE_H;
    ui_.Ask(view_->MovePerturb(action, dx, dy));
  }
}

Picture Viewer::Capture() const {
  Picture picture(width_, height_, 0);
  std::vector<uint8_t> rows(picture.rgb.size());
  view_->Read({0, 0, width_, height_}, rows.data());
  const size_t stride = 3 * static_cast<size_t>(width_);
  for (int y = 0; y < height_; ++y) {
    std::copy_n(&rows[(height_ - 1 - y) * stride], stride, &picture.rgb[y * stride]);
  }
  return picture;
}

void Viewer::WritePng(const std::string& file) const { mjp::app::WritePng(file, Capture()); }

void Viewer::Open(const std::string& path) {
  if (std::filesystem::exists(EpisodesFile(path))) {
    ui_.episodes = ReadRows(path);
    return;
  }
  ui_.selected = nullptr;
  if (std::filesystem::is_directory(path)) {
    simulation_->Send(CheckpointCommand{path});
  } else {
    simulation_->Send(ModelCommand{path});
  }
}

void Viewer::Export(const SimSnapshot& snapshot) {
  const auto [first, last] = VisibleRange(*snapshot.log, ui_);
  const DecisionLog log(snapshot.log->begin() + first, snapshot.log->begin() + last);
  const ExportFormat format = std::exchange(ui_.export_format, ExportFormat::kNone);
  try {
    const std::string file = format == ExportFormat::kCsv    ? "decisions.csv"
                             : format == ExportFormat::kJson ? "decisions.json"
                                                             : "decisions.trace.json";
    WriteFileAtomically(file, format == ExportFormat::kCsv    ? LogToCsv(log)
                              : format == ExportFormat::kJson ? LogToJson(log)
                                                              : LogToTrace(log));
    ui_.notice = "written: " + std::filesystem::absolute(file).string() + ", " +
                 Count(log.size(), "decision");
  } catch (const std::exception& error) {
    ui_.notice = error.what();
  }
}

void Viewer::ToggleRecording() {
  try {
    if (video_) {
      std::exchange(video_, nullptr)->Close();
    } else {
      video_ = VideoWriter::Open("mjpolicy-viewer", width_ & ~1, height_ & ~1, kFilmRate);
      ui_.notice = "film: " + video_->file();
      next_picture_ = mjp::Now();
    }
  } catch (const std::exception& error) {
    video_ = nullptr;
    ui_.notice = error.what();
  }
  ui_.recording = video_ != nullptr;
}

void Viewer::Record() {
  const double now = mjp::Now();
  if (now < next_picture_) return;
  const Picture frame = Capture();
  Picture even(width_ & ~1, height_ & ~1, 0);
  Paste(even, frame.rgb.data(), frame.width, frame.height, 1, 0, 0);
  try {
    // slow frames are repeated, so that the film runs at the speed of the window
    for (; next_picture_ <= now; next_picture_ += 1.0 / kFilmRate) video_->Add(even);
  } catch (const std::exception& error) {
    video_ = nullptr;
    ui_.recording = false;
    ui_.notice = error.what();
  }
}

}  // namespace mjp::app
