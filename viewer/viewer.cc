#include "viewer/viewer.h"

#include <GL/gl.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "tasks/recording/free_name.h"
#include "tasks/recording/png.h"
#include "tasks/results/results_folder.h"
#include "viewer/export.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

constexpr int kVideoRate = 30;                  // pictures per second
constexpr double kMostBehind = 0.25;            // seconds that a video makes up for
constexpr char kProgram[] = "mjpolicy-viewer";  // which what it writes is called after

std::string Written(const std::string& file) {
  return "written: " + std::filesystem::absolute(file).string();
}

// Returns the file, in the current folder.
std::string WriteLog(ExportFormat format, const DecisionLog& log) {
  const char* suffix = ".csv";
  std::string text;
  if (format == ExportFormat::kCsv) {
    text = LogToCsv(log);
  } else if (format == ExportFormat::kJson) {
    suffix = ".json";
    text = LogToJson(log);
  } else {
    suffix = ".trace.json";
    text = LogToTrace(log);
  }
  return WriteToFreeName("decisions", suffix,
                         {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string EpisodesFile(const std::string& folder) { return folder + "/episodes.jsonl"; }

std::vector<EpisodeRow> ReadRows(const std::string& folder) {
  std::vector<EpisodeRow> rows;
  for (const EpisodeResult& e : ReadEpisodes(EpisodesFile(folder), true)) {
    rows.push_back({e.seed, e.success(), e.max_reward, e.steps, e.hash});
  }
  return rows;
}

}  // namespace

Viewer::Viewer(const ViewerOptions& options)
    : scale_(options.scale), budget_given_(options.budget_ms > 0) {
  simulation_ = std::make_unique<SimulationThread>(OpenSimulation(options));
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
  if (video_) EndFilm();
  glDeleteTextures(static_cast<GLsizei>(textures_.size()), textures_.data());
  ImGui_ImplOpenGL3_Shutdown();
}

// The window is closed: the terminal is told.
void Viewer::EndFilm() {
  try {
    ToggleRecording();
  } catch (const std::exception& error) {
    ui_.notice = error.what();
  }
  std::fprintf(stderr, "%s\n", ui_.notice.c_str());
}

void Viewer::MakeView(const SimSnapshot& snapshot) {
  view_ = nullptr;  // one at a time has the framebuffer
  view_ = std::make_unique<SceneView>(snapshot.model);
  look_ = 0;
  if (!budget_given_) ui_.budget_ms = 1e3 * snapshot.period;
}

void Viewer::UploadPictures(const SimSnapshot& snapshot) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui_);
  if (!shown || shown == uploaded_) return;
  uploaded_ = shown;
  changes_.Forget();  // a texture is another picture under the same name
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

// Of the decision shown, where somebody looks at it.
void Viewer::AskForAttention(const SimSnapshot& snapshot) {
  const PolicyInfo& policy = *snapshot.policy;
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui_);
  if (!ui_.attention || policy.attended.empty() || !shown) {
    ui_.found_attention = nullptr;
    return;
  }
  if (!attention_) attention_ = std::make_unique<AttentionFinder>();
  attention_->Ask(shown, policy.network);
  ui_.found_attention = attention_->Found();
  const bool another = ui_.found_attention && ui_.found_attention->network != policy.network;
  if (another) ui_.found_attention = nullptr;
}

void Viewer::WaitForAttention() {
  if (attention_) attention_->Wait();
}

bool Viewer::Frame(int width, int height) {
  width_ = width;
  height_ = height;
  const std::shared_ptr<const SimSnapshot> snapshot = simulation_->snapshot();
  const double begin = mjp::Now();
  if (snapshot->model.get() != view_->model()) {
    ui_.selected = nullptr;
    MakeView(*snapshot);
  }
  UploadPictures(*snapshot);
  AskForAttention(*snapshot);
  ImGui_ImplOpenGL3_NewFrame();
  const double uploaded = mjp::Now();
  ImGui::NewFrame();
  const Layout layout = DrawPanels(*snapshot, ui_, scale_);
  scene_area_ = layout.scene;
  HandleSceneMouse();
  ImGui::Render();
  const double panels = mjp::Now();
  view_->Fit(scene_area_.width / scene_area_.height);
  view_->Update(*snapshot, ui_);
  const double scene = mjp::Now();
  const bool changed = Compose(layout);
  times_ = {1e3 * (panels - uploaded), 1e3 * (scene - panels),
            1e3 * (uploaded - begin + mjp::Now() - scene)};
  ui_.ui_ms += 0.05 * (times_.panels + times_.scene - ui_.ui_ms);
  for (Command& command : ui_.commands) simulation_->Send(std::move(command));
  ui_.commands.clear();
  ExportWished();
  Record();
  ForgetNotice();
  return changed;
}

// Draws what has changed since the frame before.
bool Viewer::Compose(const Layout& layout) {
  if (canvas_.Resize(width_, height_)) changes_.Forget();
  const uint64_t look = LookOf(&layout.scene, sizeof(layout.scene), view_->Look());
  // on the CPU a scene that moves has no time for smooth edges
  constexpr int kStill = 2;  // frames
  still_frames_ = look == look_ ? std::min(still_frames_ + 1, kStill) : 0;
  const bool smooth = still_frames_ == kStill || !view_->on_cpu();
  const ImDrawData& data = *ImGui::GetDrawData();
  const std::vector<bool> changed =
      changes_.Find(data, layout.docks.size(), LookOf(&smooth, sizeof(smooth), look));
  const bool all = std::find(changed.begin(), changed.end(), false) == changed.end();
  if (std::find(changed.begin(), changed.end(), true) == changed.end()) return false;
  if (look != look_ || smooth != smooth_) {
    view_->Draw(static_cast<int>(layout.scene.width), static_cast<int>(layout.scene.height),
                smooth);
    look_ = look;
    smooth_ = smooth;
  }
  if (all) canvas_.Begin({0, 0, static_cast<float>(width_), static_cast<float>(height_)});
  for (size_t i = 0; i < layout.docks.size() && !all; ++i) {
    if (changed[i + 1]) canvas_.Begin(layout.docks[i].area);
  }
  if (changed[0]) canvas_.Paste(view_->framebuffer(), layout.scene);
  std::vector<ImDrawList*> lists;
  for (int i = 0; i < data.CmdListsCount; ++i) {
    const int part = Changes::PartOf(*data.CmdLists[i]);
    if (all || (part >= 0 && changed[part])) lists.push_back(data.CmdLists[i]);
  }
  ImDrawData drawn = data;
  drawn.CmdLists = lists.data();
  drawn.CmdListsCount = static_cast<int>(lists.size());
  ImGui_ImplOpenGL3_RenderDrawData(&drawn);
  return true;
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

bool Viewer::OffscreenFrame(int width, int height) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
  io.DeltaTime = 1.0f / 60;
  return Frame(width, height);
}

void Viewer::HandleSceneMouse() {
  const ImGuiIO& io = ImGui::GetIO();
  if (simulation_->snapshot()->recording && io.KeyCtrl) return HandleHandMouse();
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

// Moves the hand of a person who records, or a mocap body.
void Viewer::HandleHandMouse() {
  const ImGuiIO& io = ImGui::GetIO();
  const bool left = ImGui::IsMouseDown(0), right = ImGui::IsMouseDown(1);
  if (io.WantCaptureMouse || !scene_area_.Contains(io.MousePos)) return;
  const auto snapshot = simulation_->snapshot();
  if (io.MouseWheel != 0) {
    ui_.Ask(DragCommand{view_->Push(snapshot->recording->target, io.MouseWheel)});
  }
  if ((!left && !right) || (io.MouseDelta.x == 0 && io.MouseDelta.y == 0)) return;
  ui_.Ask(DragCommand{view_->Drag(snapshot->recording->target, io.MouseDelta.x / scene_area_.height,
                                  io.MouseDelta.y / scene_area_.height, right)});
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
  canvas_.Read(rows.data());
  const size_t stride = 3 * static_cast<size_t>(width_);
  for (int y = 0; y < height_; ++y) {
    std::copy_n(&rows[(height_ - 1 - y) * stride], stride, &picture.rgb[y * stride]);
  }
  return picture;
}

void Viewer::WritePng(const std::string& file) const { mjp::app::WritePng(file, Capture()); }

void Viewer::KeepPicture() { ui_.notice = Written(WritePngToFreeName(kProgram, Capture())); }

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

// What a panel's button asked for.
void Viewer::ExportWished() {
  const ExportFormat format = std::exchange(ui_.export_format, ExportFormat::kNone);
  if (format == ExportFormat::kNone) return;
  try {
    Export(format);
  } catch (const std::exception& error) {
    ui_.notice = error.what();
  }
}

void Viewer::Export(ExportFormat format) {
  const std::shared_ptr<const SimSnapshot> snapshot = simulation_->snapshot();
  const auto [first, last] = VisibleRange(*snapshot->log, ui_);
  const DecisionLog log(snapshot->log->begin() + first, snapshot->log->begin() + last);
  ui_.notice = Written(WriteLog(format, log)) + ", " + Count(log.size(), "decision");
}

void Viewer::ToggleRecording() {
  const std::unique_ptr<VideoWriter> video = std::move(video_);
  ui_.recording = false;
  if (video) {
    video->Close();
    ui_.notice = Written(video->file());
    return;
  }
  if (width_ < 2 || height_ < 2) throw mjp::BadInput("there is no frame to record yet");
  video_picture_ = Picture(width_ & ~1, height_ & ~1, 0);
  video_ = VideoWriter::Open(kProgram, video_picture_.width, video_picture_.height, kVideoRate,
                             VideoWriter::Before::kKept);
  next_picture_ = mjp::Now();
  try {
    AddPictures();
  } catch (...) {
    video_ = nullptr;
    throw;
  }
  ui_.recording = true;
  ui_.notice = "recording; Ctrl-R ends the video";
}

// The pictures that are due since the last one: slow frames are repeated, so that the video runs at
// the speed of the window. An encoder that takes longer for a picture than it lasts is waited for:
// were all of that time made up for, each frame would take longer than the one before, for ever.
void Viewer::AddPictures() {
  const double now = mjp::Now();
  if (now < next_picture_) return;
  const Picture frame = Capture();
  // a video keeps the size it began with, whatever becomes of the window
  std::fill(video_picture_.rgb.begin(), video_picture_.rgb.end(), uint8_t{0});
  Paste(video_picture_, frame.rgb.data(), frame.width, frame.height, 1, 0, 0);
  for (; next_picture_ <= now; next_picture_ += 1.0 / kVideoRate) video_->Add(video_picture_);
  next_picture_ = std::max(next_picture_, mjp::Now() - kMostBehind);
}

void Viewer::Record() {
  if (!video_) return;
  try {
    AddPictures();
  } catch (const std::exception& error) {
    video_ = nullptr;
    ui_.recording = false;
    ui_.notice = error.what();
  }
}

}  // namespace mjp::app
