#include "plugin/pictures/mujoco_renderer.h"

#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/glcorearb.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/picture_resize.h"
#include "plugin/pictures/egl_context.h"
#include "tasks/pusht/pictures/rasterise.h"
#include "tests/support/mujoco_fixture.h"
#include "tests/support/random_scenes.h"
#include "tests/support/real_frames.h"
#include "tests/support/renderer.h"
#include "tests/support/shared_data.h"

namespace mjp {
namespace {

using mjp_test::DataPtr;
using mjp_test::ModelPtr;
using Picture = std::vector<uint8_t>;

constexpr char kTable[] = MJPOLICY_SOURCE_DIR "/models/pusht.xml";

// A red slab high up, a blue one low down, seen by a camera from the side and one from above.
constexpr char kSlabs[] = R"(
  <mujoco>
    <visual><headlight active="0"/></visual>
    <asset><material name="red" rgba="1 0 0 1" emission="0.7"/>
           <material name="blue" rgba="0 0 1 1" emission="0.7"/></asset>
    <worldbody>
      <camera name="side" pos="0 -5 0" xyaxes="1 0 0 0 0 1" fovy="60"/>
      <camera name="above" pos="0 0 5" fovy="60"/>
      <geom type="box" material="red" pos="0 0 1" size="9 9 0.5"/>
      <geom type="box" material="blue" pos="0 0 -1" size="9 9 0.5"/>
    </worldbody>
  </mujoco>)";

// What OpenGL refuses the renderer, on whatever thread.
enum class Refused { kNothing, kTexture, kFramebuffer };
std::atomic<Refused> refused = Refused::kNothing;

class MujocoRenderer : public mjp_test::MujocoTest {
 protected:
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  }

  static ModelPtr LoadTable() {
    char error[1000] = "";
    ModelPtr model(mj_loadXML(kTable, nullptr, error, sizeof(error)));
    if (!model) throw std::runtime_error(error);
    return model;
  }

  // Pictures of `scenes` by a source of its own.
  static Picture DrawTable(const mjModel* model, const std::vector<FlatScene>& scenes) {
    const DataPtr data(mj_makeData(model));
    const auto source = MakeMujocoPictureSource(model, {.cameras = {"top"}});
    Picture rgb(scenes.size() * kPictureBytes);
    for (size_t i = 0; i < scenes.size(); ++i) {
      const FlatScene& s = scenes[i];
      const double angle = s.block_angle;  // the joints hold the centre of gravity
      const double qpos[5] = {s.agent_x / 100., s.agent_y / 100.,
                              (s.block_x - 45 * std::sin(angle)) / 100,
                              (s.block_y + 45 * std::cos(angle)) / 100, angle};
      std::copy_n(qpos, 5, data->qpos);
      mj_kinematics(model, data.get());
      mj_camlight(model, data.get());
      source->Render(model, data.get(), std::span(rgb).subspan(i * kPictureBytes, kPictureBytes));
    }
    return rgb;
  }

  // What the cameras of a model see in its first pose, each `width` x `height`.
  static Picture DrawOnce(const mjModel* model, const PictureRequest& request) {
    const DataPtr data(mj_makeData(model));
    mj_forward(model, data.get());
    Picture rgb(request.cameras.size() * request.width * request.height * 3);
    MakeMujocoPictureSource(model, request)->Render(model, data.get(), rgb);
    return rgb;
  }

  // States within the walls, where the demonstrations are.
  static std::vector<FlatScene> ScenesInside(int count, unsigned seed) {
    std::vector<FlatScene> scenes = mjp_test::RandomScenes(count, seed);
    for (FlatScene& s : scenes) {
      const auto inside = [](float v, float margin) {
        return margin + std::fmod(std::abs(v), 512 - 2 * margin);
      };
      s = {inside(s.agent_x, 20), inside(s.agent_y, 20), inside(s.block_x, 130),
           inside(s.block_y, 130), std::fmod(s.block_angle, 6.28f)};
    }
    return scenes;
  }
};

TEST_F(MujocoRenderer, MatchesTheBenchmarksOwnPictures) {
  SHARED_OR_SKIP(frames_path, "pusht/frames_u8.npy");
  SHARED_OR_SKIP(states_path, "pusht/frames_state.npy");
  const mjp_test::RealFrames real = mjp_test::ReadRealFrames(frames_path, states_path);
  const ModelPtr model = LoadTable();
  const double error = mjp_test::MeanAbsoluteError(DrawTable(model.get(), real.scenes), real.rgb);
  std::printf("mean error per channel value of %zu real pictures: %.4f levels\n",
              real.scenes.size(), error);
  EXPECT_LE(error, 0.15);
}

TEST_F(MujocoRenderer, AgreesWithTheRasteriser) {
  const std::vector<FlatScene> scenes = ScenesInside(48, 11);
  Picture drawn(scenes.size() * kPictureBytes);
  RasteriseCpu(scenes.data(), static_cast<int>(scenes.size()), drawn.data());
  const ModelPtr model = LoadTable();
  EXPECT_LE(mjp_test::MeanAbsoluteError(DrawTable(model.get(), scenes), drawn), 0.15);
}

// Wherever it is reduced: by OpenGL, or, where that is too old, on the CPU.
TEST_F(MujocoRenderer, ReducesTheDrawingBitForBit) {
  const ModelPtr model = LoadTable();
  const Picture drawing =
      DrawOnce(model.get(), {.cameras = {"top"}, .width = kDrawingSize, .height = kDrawingSize});
  Picture reduced(kPictureBytes);
  ResizeDrawing(drawing.data(), kDrawingSize * 3, reduced.data());
  EXPECT_EQ(DrawOnce(model.get(), {.cameras = {"top"}}), reduced);
}

TEST_F(MujocoRenderer, ThreadsDrawTheSameAsOne) {
  const ModelPtr model = LoadTable();
  const std::vector<FlatScene> scenes[2] = {ScenesInside(16, 12), ScenesInside(16, 13)};
  const Picture alone[2] = {DrawTable(model.get(), scenes[0]), DrawTable(model.get(), scenes[1])};
  Picture together[2];
  {
    std::jthread other([&] { together[1] = DrawTable(model.get(), scenes[1]); });
    together[0] = DrawTable(model.get(), scenes[0]);
  }
  EXPECT_EQ(together[0], alone[0]);
  EXPECT_EQ(together[1], alone[1]);
}

TEST_F(MujocoRenderer, ItsLookIsWhatItDraws) {
  const ModelPtr table = LoadTable();
  const PictureRequest reduced = {.cameras = {"top"}};
  const std::vector<PictureLook> looks = MujocoLooks(table.get(), reduced);
  ASSERT_EQ(looks.size(), 1u);
  EXPECT_EQ(looks, MakeMujocoPictureSource(table.get(), reduced)->Looks());
  EXPECT_EQ(looks[0].width, kDrawingSize);
  EXPECT_FALSE(looks[0].shadows);
  EXPECT_EQ(looks[0].samples, 1);
  const PictureRequest large = {.cameras = {"top"}, .width = 64, .height = 40};
  EXPECT_EQ(MujocoLooks(table.get(), large)[0].width, 64);
  EXPECT_EQ(MujocoLooks(table.get(), large)[0].height, 40);
  EXPECT_THROW(MujocoLooks(table.get(), {.cameras = {"side"}}), Error);
}

TEST_F(MujocoRenderer, OtherCamerasAreDrawnAtTheSizeAskedFor) {
  const ModelPtr model = Compile(kSlabs);
  constexpr int kWidth = 64, kHeight = 40, kBytes = kWidth * kHeight * 3;
  const Picture rgb =
      DrawOnce(model.get(), {.cameras = {"side", "above"}, .width = kWidth, .height = kHeight});
  const auto pixel = [&](int camera, int x, int y) {
    const uint8_t* p = &rgb[camera * kBytes + (y * kWidth + x) * 3];
    return std::vector<int>{p[0], p[1], p[2]};
  };
  const std::vector<int> red = {255, 0, 0}, blue = {0, 0, 255}, black = {0, 0, 0};
  EXPECT_EQ(pixel(0, 32, 8), red);
  EXPECT_EQ(pixel(0, 32, 20), black);
  EXPECT_EQ(pixel(0, 32, 31), blue);
  EXPECT_EQ(pixel(1, 32, 31), red);
}

// sites, like segments of tendons, are geoms of the scene beside those of the model
TEST_F(MujocoRenderer, DrawsEachOfManySites) {
  const auto draw = [](int hidden) {
    std::string sites;
    for (int i = 0; i < hidden; ++i) sites += "<site pos=\"0 0 0\" size=\"0.1\"/>";
    const ModelPtr model =
        Compile("<mujoco><worldbody><camera name=\"above\" pos=\"0 0 5\"/>" + sites +
                "<site type=\"box\" size=\"1 1 1\" rgba=\"1 0 0 1\"/></worldbody></mujoco>");
    return DrawOnce(model.get(), {.cameras = {"above"}, .width = 32, .height = 32});
  };
  EXPECT_NE(draw(0), Picture(32 * 32 * 3, 0));
  EXPECT_EQ(draw(5000), draw(0));
}

long ResidentKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes;
  }
  return 0;
}

TEST_F(MujocoRenderer, MakingAndDestroyingSourcesDoesNotGrowTheProcess) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps freed memory for a while, and finds leaks by itself";
#endif
  const ModelPtr model = LoadTable();
  const auto repeat = [&](int times) {
    for (int i = 0; i < times; ++i) DrawTable(model.get(), {{100, 100, 200, 200, 1}});
  };
  repeat(20);
  const long before = ResidentKilobytes();
  repeat(100);
  EXPECT_LT(ResidentKilobytes() - before, 8 * 1024);
}

TEST_F(MujocoRenderer, LeavesTheCallersContextAlone) {
  const auto get_display = reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(
      eglGetProcAddress("eglGetPlatformDisplayEXT"));
  const EGLDisplay display =
      get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  if (!eglInitialize(display, nullptr, nullptr)) GTEST_SKIP() << "no surfaceless Mesa";
  ASSERT_TRUE(eglBindAPI(EGL_OPENGL_ES_API));  // another interface than the renderer's
  const EGLint attributes[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                               EGL_OPENGL_ES2_BIT, EGL_NONE};
  EGLConfig config;
  EGLint count = 0;
  ASSERT_TRUE(eglChooseConfig(display, attributes, &config, 1, &count) && count == 1);
  const EGLint version[] = {EGL_CONTEXT_CLIENT_VERSION, 2, EGL_NONE};
  const EGLContext own = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
  ASSERT_TRUE(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, own));

  const ModelPtr model = LoadTable();
  DrawTable(model.get(), {{100, 100, 200, 200, 1}});

  EXPECT_EQ(eglGetCurrentContext(), own);
  EXPECT_EQ(eglQueryAPI(), static_cast<EGLenum>(EGL_OPENGL_ES_API));
  EXPECT_EQ(eglGetError(), EGL_SUCCESS);
  EXPECT_TRUE(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT));
  eglDestroyContext(display, own);
}

// A policy on the GPU asks for the drawing in a texture first. The renderer asks again each time,
// and MuJoCo's framebuffer stays whole for the host's way.
TEST_F(MujocoRenderer, DrawsAsBeforeWhereOpenGlHasNoTexture) {
  const ModelPtr model = Compile(kSlabs);
  const DataPtr data(mj_makeData(model.get()));
  mj_forward(model.get(), data.get());
  PictureRequest request = {.cameras = {"side"}, .width = 64, .height = 40};
  const Picture expected = DrawOnce(model.get(), request);
  request.cuda_device = 0;
  for (const Refused what : {Refused::kTexture, Refused::kFramebuffer}) {
    const auto source = MakeMujocoPictureSource(model.get(), request);
    refused = what;
    for (int i = 0; i < 2; ++i) EXPECT_THROW(source->RenderOnGpu(model.get(), data.get()), Error);
    refused = Refused::kNothing;
    for (int i = 0; i < 2; ++i) {
      Picture rgb(expected.size());
      source->Render(model.get(), data.get(), rgb);
      EXPECT_EQ(rgb, expected) << i;
      EXPECT_NO_THROW(source->RenderOnGpu(model.get(), data.get()));
    }
  }
}

TEST_F(MujocoRenderer, AModelThatWasRefusedIsAdoptedLater) {
  const ModelPtr model = LoadTable(), other = LoadTable();
  other->cam_resolution[0] = other->cam_resolution[1] = 96;  // not drawn larger and reduced
  const DataPtr data(mj_makeData(model.get()));
  mj_forward(model.get(), data.get());
  const Picture expected = DrawOnce(model.get(), {.cameras = {"top"}});
  const auto source = MakeMujocoPictureSource(other.get(), {.cameras = {"top"}});
  refused = Refused::kTexture;
  EXPECT_THROW(source->Adopt(model.get()), Error);
  refused = Refused::kNothing;
  source->Adopt(model.get());
  Picture rgb(expected.size());
  source->Render(model.get(), data.get(), rgb);
  EXPECT_EQ(rgb, expected);
}

TEST_F(MujocoRenderer, LeavesTheModelAsItIs) {
  const ModelPtr model = LoadTable();
  const mjModel before = *model;
  DrawTable(model.get(), {{100, 100, 200, 200, 1}});
  EXPECT_EQ(std::memcmp(static_cast<const void*>(&before), static_cast<const void*>(model.get()),
                        sizeof(before)),
            0);
}

TEST_F(MujocoRenderer, DecorationOfPluginsIsNotInThePicture) {
  static bool called = false, flagged = false;
  mjpPlugin plugin;
  mjp_defaultPlugin(&plugin);
  plugin.name = "test.renderer.decorator";
  plugin.capabilityflags = mjPLUGIN_PASSIVE;
  plugin.nstate = [](const mjModel*, int) { return 0; };
  plugin.init = [](const mjModel*, mjData*, int) { return 0; };
  plugin.compute = [](const mjModel*, mjData*, int, int) {};
  plugin.visualize = [](const mjModel*, mjData*, const mjvOption*, mjvScene* scene, int) {
    called = true;
    flagged = RenderingPolicyPicture();
    const mjtNum size[3] = {1, 1, 1}, position[3] = {0, 0, 3};
    const float green[4] = {0, 1, 0, 1};
    mjv_initGeom(&scene->geoms[scene->ngeom++], mjGEOM_SPHERE, size, position, nullptr, green);
    scene->geoms[scene->ngeom - 1].category = mjCAT_DECOR;
  };
  mjp_registerPlugin(&plugin);
  const std::string extension =
      "<mujoco><extension><plugin plugin=\"test.renderer.decorator\"><instance name=\"d\"/>"
      "</plugin></extension>";
  const std::string decorated = extension + (std::strstr(kSlabs, "<mujoco>") + 8);
  const PictureRequest request = {.cameras = {"above"}, .width = 32, .height = 32};
  EXPECT_EQ(DrawOnce(Compile(decorated).get(), request), DrawOnce(Compile(kSlabs).get(), request));
  EXPECT_TRUE(called);
  EXPECT_TRUE(flagged);
  EXPECT_FALSE(RenderingPolicyPicture());
}

TEST_F(MujocoRenderer, WrongRequestsAreErrors) {
  const ModelPtr model = Compile(kSlabs);
  const auto message = [&](const PictureRequest& request) {
    try {
      MakeMujocoPictureSource(model.get(), request);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message({.cameras = {"top"}}),
            "camera \"top\" is not in the model; it has side, above");
  EXPECT_THAT(message({.cameras = {"side"}, .width = 0}), testing::HasSubstr("0 x 96 pixels"));
  EXPECT_THAT(message({.cameras = {"side"}, .width = 5000}), testing::HasSubstr("at most 4096"));
  const DataPtr data(mj_makeData(model.get()));
  Picture small(10);
  EXPECT_THROW(MakeMujocoPictureSource(model.get(), {.cameras = {"side"}})
                   ->Render(model.get(), data.get(), small),
               Error);
}

TEST(MujocoRendererDeathTest, WithoutADriverTheErrorSaysWhatToDo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent.json", 1);
        try {
          MujocoRendererDescription();
        } catch (const Error& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(static_cast<int>(error.code()));
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::kEnvironment)), "install a GL driver");
}

}  // namespace
}  // namespace mjp

// The linker gives every call of EglContext::FindAny to the second (tests/CMakeLists.txt).
#define FIND_ANY "_ZN3mjp10EglContext7FindAnyEPKc"
using Function = void (*)();
Function RealFindAny(const char* name) asm("__real_" FIND_ANY);
Function WrapFindAny(const char* name) asm("__wrap_" FIND_ANY);

static void TexStorage(GLenum target, GLsizei levels, GLenum format, GLsizei width,
                       GLsizei height) {
  static const auto real = reinterpret_cast<PFNGLTEXSTORAGE2DPROC>(RealFindAny("glTexStorage2D"));
  constexpr GLsizei kTooLarge = 1 << 30;
  real(target, levels, format, mjp::refused == mjp::Refused::kTexture ? kTooLarge : width, height);
}

static GLenum CheckStatus(GLenum target) {
  static const auto real =
      reinterpret_cast<PFNGLCHECKFRAMEBUFFERSTATUSPROC>(RealFindAny("glCheckFramebufferStatus"));
  return mjp::refused == mjp::Refused::kFramebuffer ? GL_FRAMEBUFFER_UNSUPPORTED : real(target);
}

Function WrapFindAny(const char* name) {
  if (std::strcmp(name, "glTexStorage2D") == 0) return reinterpret_cast<Function>(TexStorage);
  if (std::strcmp(name, "glCheckFramebufferStatus") == 0)
    return reinterpret_cast<Function>(CheckStatus);
  return RealFindAny(name);
}
