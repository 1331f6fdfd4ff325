// Pictures without a display. A script is lines of words:
//   speed X          relative to real time; 0: as fast as it can
//   seed N           restart with this seed
//   run STEP         play until this control step
//   select D         show decision D of the log; -1: the newest
//   chain K          show the chunk after denoising step K; -1: the last
//   sample N         N more chunks for the last picture
//   show W, hide W   W: chunk, denoising, windows (of its steps), keypoints, attention,
//                    pictures (over the scene), help, hidden (groups of geoms)
//   query N          show the attention of action N of the chunk; -1: the mean of all
//   tab W            W: run, timing, chunk; where the window has no room for all panels
//   sampler W STEPS  ddpm or ddim
//   pin              this run becomes A
//   camera N         step through the cameras; 0: the free one
//   turn X Y         turn the camera, in shares of the window
//   zoom N           notches of the wheel; negative: nearer
//   png FILE         write a picture
//   model FILE       open an MJCF file
//   open FOLDER      open a checkpoint, or an evaluation
//   seek STEP        go back to before a control step
//   record, stop     a video of the window from here on, in the current folder
//   export FORMAT    csv, json or trace of the decisions shown, into the current folder
//   drive X Y Z S    hold: the hand to the right, away, up; the gripper (shares of full speed)
//   drag X Y Z       move the hand's target or a mocap body, in the world
//   episode W        W: start, keep, discard, skip; target: drag the next hand or mocap body
//   saved            wait until kept episodes are on the disk, and print how many there are
//   bench FRAMES     play, and print what a frame and a decision take
// A line that begins with # is a comment.

#include <imgui.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/folders.h"
#include "plugin/pictures/egl_context.h"
#include "policy/option_names.h"
#include "viewer/panels/panels.h"
#include "viewer/viewer.h"

namespace mjp::app {
namespace {

const std::map<std::string, const char*>& BuiltInScripts() {
  static const std::map<std::string, const char*> scripts = {
      {"readme",
       "sampler ddim 10\nspeed 0\nseed 100001\nrun 300\nseed 100002\nrun 300\nseed 100003\n"
       "run 300\nseed 100004\nrun 300\nseed 100005\nrun 300\nseed 100006\nrun 300\nspeed 1\n"
       "seed 100000\nrun 36\nshow keypoints\nsample 8\nturn 0.06 -0.2\nzoom 2\npng viewer.png\n"
       "camera 0\nhide keypoints\nsampler ddpm 100\nrun 60\nshow denoising\nsample 8\n"
       "chain 90\npng viewer_denoising.png\n"
       "hide denoising\nchain -1\npin\nsampler ddim 10\nrun 60\npng viewer_compare.png\n"
       "show help\npng viewer_help.png\n"},
      {"bench", "speed 1\nbench 600\n"},
  };
  return scripts;
}

class Script {
 public:
  Script(Viewer& viewer, const ViewerOptions& options, const std::string& folder)
      : viewer_(viewer), ui_(viewer.ui()), options_(options), folder_(folder) {}

  void Run(std::istream& lines) {
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      std::istringstream words(line);
      std::string word;
      if (!(words >> word) || word[0] == '#') continue;
      if (!Obey(word, words) || words.fail()) {
        throw mjp::Error(mjp::ExitCode::kUsage, "script, line " + std::to_string(number) +
                                                    ": cannot execute '" + line + "'");
      }
    }
  }

 private:
  template <typename T>
  static T Next(std::istream& words) {
    T value{};
    words >> value;
    return value;
  }

  bool Obey(const std::string& word, std::istream& words) {
    if (word == "speed") return Send(SpeedCommand{Next<double>(words)});
    if (word == "seed") return Send(RestartCommand{Next<uint32_t>(words)});
    if (word == "sample") return Send(SampleCommand{Next<int>(words)});
    if (word == "seek") return Send(SeekCommand{Next<int>(words)});
    if (word == "run") return PlayUntil(Next<int>(words));
    if (word == "select") return Select(Next<int>(words));
    if (word == "sampler") return SetSampler(words);
    if (word == "tab") return ChooseTab(Next<std::string>(words));
    if (word == "show" || word == "hide") return Show(Next<std::string>(words), word == "show");
    if (word == "chain") {
      ui_.denoising_step = Next<int>(words);
    } else if (word == "query") {
      ui_.attention_action = Next<int>(words);
    } else if (word == "pin") {
      Pin(*viewer_.simulation().snapshot(), ui_);
    } else if (word == "camera") {
      viewer_.scene().NextCamera(Next<int>(words));
    } else if (word == "turn") {
      const double x = Next<double>(words);
      viewer_.scene().MoveCamera(mjMOUSE_ROTATE_V, x, Next<double>(words));
    } else if (word == "zoom") {
      viewer_.scene().Zoom(Next<double>(words));
    } else if (word == "open" || word == "model") {
      return OpenPath(Next<std::string>(words));
    } else if (word == "record" || word == "stop") {
      if (ui_.recording == (word == "record")) return false;
      DrawFrame();  // the first one, or the last
      viewer_.ToggleRecording();
    } else if (word == "export") {
      return Export(Next<std::string>(words));
    } else if (word == "bench") {
      MeasureFrames(viewer_, options_.width, options_.height, Next<int>(words));
    } else if (word == "png") {
      WritePng(Next<std::string>(words));
    } else {
      return ObeyPerson(word, words);
    }
    return true;
  }

  // What a person does who records a data set.
  bool ObeyPerson(const std::string& word, std::istream& words) {
    if (!viewer_.simulation().snapshot()->recording) return false;
    if (word == "saved") return WaitForSaving();
    if (word == "drag") {
      DragCommand drag;
      for (double& by : drag.by) by = Next<double>(words);
      return Send(drag);
    }
    if (word == "drive") {
      DriveCommand drive;
      for (double& share : drive.input.move) share = Next<double>(words);
      drive.input.squeeze = Next<double>(words);
      drive.input.heading = viewer_.scene().Heading();
      return Send(drive);
    }
    const std::map<std::string, EpisodeCommand> episode = {{"start", EpisodeCommand::kStart},
                                                           {"keep", EpisodeCommand::kKeep},
                                                           {"discard", EpisodeCommand::kDiscard},
                                                           {"skip", EpisodeCommand::kSkip},
                                                           {"target", EpisodeCommand::kNextTarget}};
    const auto found = episode.find(word == "episode" ? Next<std::string>(words) : "");
    if (found == episode.end()) return false;
    return Send(found->second);
  }

  bool WaitForSaving() {
    while (viewer_.simulation().snapshot()->recording->saving) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    Checked();
    std::printf("kept %lld\n",
                static_cast<long long>(viewer_.simulation().snapshot()->recording->kept));
    std::fflush(stdout);
    return true;
  }

  bool Send(Command command) {
    SimulationThread& simulation = viewer_.simulation();
    simulation.Send(std::move(command));
    return Checked();
  }

  // Waits for what was sent, and stops the script with what went wrong.
  bool Checked() {
    viewer_.simulation().Flush();
    const std::string message = viewer_.simulation().snapshot()->message;
    if (!message.empty()) throw mjp::BadInput(message);
    return true;
  }

  bool OpenPath(const std::string& path) {
    viewer_.Open(path);
    return Checked();
  }

  // Frames go on while it plays where a video is taken.
  bool PlayUntil(int step) {
    Send(RunCommand{step});
    for (;;) {
      const std::shared_ptr<const SimSnapshot> snapshot = viewer_.simulation().snapshot();
      if (!snapshot->message.empty()) throw mjp::BadInput(snapshot->message);
      if (!snapshot->playing) return true;
      if (ui_.recording) DrawFilm();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  bool Select(int index) {
    const DecisionLog& log = *viewer_.simulation().snapshot()->log;
    if (index >= static_cast<int>(log.size())) return false;
    ui_.selected = index < 0 ? nullptr : log[index];
    return true;
  }

  bool SetSampler(std::istream& words) {
    mjp::PolicyOptions options = viewer_.simulation().snapshot()->policy->options;
    options.sampler.kind = mjp::ParseSampler("sampler", Next<std::string>(words));
    options.sampler.steps = Next<int>(words);
    return Send(PolicyCommand{options});
  }

  bool Show(const std::string& what, bool on) {
    if (what == "chunk") return (ui_.show_chunk = on, true);
    if (what == "denoising") return (ui_.show_denoising = on, true);
    if (what == "help") return (ui_.show_help = on, true);
    if (what == "hidden") return (ui_.show_hidden = on, true);
    if (what == "pictures") return (ui_.large_pictures = on, true);
    if (what == "windows") return (ui_.show_windows = on, true);
    if (what == "attention") return (ui_.attention = on, true);
    if (what == "keypoints") {
      ui_.keypoints = on;
      return Send(KeypointCommand{on});
    }
    return false;
  }

  bool ChooseTab(const std::string& name) {
    const std::map<std::string, PanelGroup> groups = {
        {"run", PanelGroup::kRun}, {"timing", PanelGroup::kTiming}, {"chunk", PanelGroup::kChunk}};
    if (!groups.contains(name)) return false;
    ui_.group = groups.at(name);
    return true;
  }

  bool Export(const std::string& format) {
    const std::map<std::string, ExportFormat> formats = {{"csv", ExportFormat::kCsv},
                                                         {"json", ExportFormat::kJson},
                                                         {"trace", ExportFormat::kTrace}};
    if (!formats.contains(format)) return false;
    viewer_.Export(formats.at(format));
    return true;
  }

  void DrawFilm() {
    DrawFrame();
    if (!ui_.recording) throw mjp::BadInput(ui_.notice);
  }

  void DrawFrame() { viewer_.OffscreenFrame(options_.width, options_.height); }

  void WritePng(const std::string& file) {
    // tables and windows that size themselves need two frames to settle
    for (int i = 0; i < 3; ++i) {
      DrawFrame();
      viewer_.WaitForAttention();
    }
    viewer_.WritePng((std::filesystem::path(folder_) / file).string());
  }

  Viewer& viewer_;
  UiState& ui_;
  const ViewerOptions& options_;
  std::string folder_;
};

// ImGui's own state, for the length of a run.
struct ImGuiScope {
  ImGuiScope() { ImGui::CreateContext(); }
  ~ImGuiScope() { ImGui::DestroyContext(); }
};

}  // namespace

int RunScript(const ViewerOptions& options, const std::string& script, const std::string& folder) {
  constexpr size_t kLongest = 1 << 20;  // bytes
  const auto built_in = BuiltInScripts().find(script);
  std::istringstream text(built_in != BuiltInScripts().end() ? built_in->second
                                                             : ReadFile(script, kLongest));
  std::filesystem::create_directories(folder);
  const mjp::EglContext context(-1);
  const ImGuiScope imgui;
  Viewer viewer(options);
  Script(viewer, options, folder).Run(text);
  return 0;
}

}  // namespace mjp::app
