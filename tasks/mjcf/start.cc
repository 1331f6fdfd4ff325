#include "tasks/mjcf/start.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "plugin/model/binding.h"
#include "tasks/mjcf/start_field.h"

namespace mjp::app {
namespace {

constexpr char kElement[] = "task.start";
constexpr const char* kDistributions[] = {"uniform", "normal", "around", "choice"};

const StartFieldKind& FieldOf(const std::string& word, const Place& place) {
  std::vector<std::string> words;
  for (const StartFieldKind& each : kStartFields) {
    if (word == each.word) return each;
    words.emplace_back(each.word);
  }
  words.insert(words.end(), {"key", "settle"});
  throw place.Refuse(NoSuch("beginning of an entry", word, words));
}

bool ReadRandom(const mjModel* model) {
  const char* text = CustomText(model, "task.random");
  if (!text) return false;
  const std::string word = Trimmed(text);
  if (word == "numpy" || word == "philox") return word == "numpy";
  throw Place{"task.random", ""}.Refuse(NoSuch("generator", word, {"numpy", "philox"}));
}

}  // namespace

Start::Start(const mjModel* model) : numpy_(ReadRandom(model)) {
  const char* text = CustomText(model, kElement);
  for (const std::string& entry : Entries(text ? text : "")) {
    const Place place{kElement, entry};
    const std::vector<std::string> words = Words(entry);
    if (words[0] == "key") {
      ReadKey(model, words, place);
    } else if (words[0] == "settle") {
      ReadSettle(model, words, place);
    } else {
      ReadDraw(model, words, place);
    }
  }
}

void Start::ReadKey(const mjModel* model, const std::vector<std::string>& words,
                    const Place& place) {
  if (words.size() != 2) throw place.Refuse("write: key NAME");
  if (key_ >= 0) throw place.Refuse("a start has one keyframe; this is the second");
  key_ = FindNamed(model, mjOBJ_KEY, words[1], place);
}

void Start::ReadSettle(const mjModel* model, const std::vector<std::string>& words,
                       const Place& place) {
  constexpr double kLongest = 1000;
  if (words.size() != 2) throw place.Refuse("write: settle SECONDS");
  if (settle_ >= 0) throw place.Refuse("a start settles once; this is the second time");
  const double seconds = ToNumber(words[1], place);
  if (seconds < 0 || seconds > kLongest) throw place.Refuse("give 0 to 1000 seconds");
  if (seconds > 0 && model->nhistory > 0) {
    throw place.Refuse("the model has delays, and what was before the start would act after it");
  }
  settle_ = static_cast<int>(std::lround(seconds / model->opt.timestep));
}

void Start::ReadDraw(const mjModel* model, const std::vector<std::string>& words,
                     const Place& place) {
  const StartFieldKind& kind = FieldOf(words[0], place);
  if (words.size() < 4) {
    throw place.Refuse(std::string("write: ") + kind.word + " NAME uniform LOW HIGH");
  }
  std::string name = words[1];
  const std::optional<Components> chosen = CutComponents(name);
  if (!chosen) throw place.Refuse("components are chosen as NAME[1] or NAME[0:2]");
  Draw draw{};
  draw.field = kind.field;
  draw.id = FindNamed(model, kind.type, name, place);
  const int size = StartFieldSize(model, kind.field, draw.id);
  if (size == 0) {
    throw place.Refuse("\"" + name + "\" has no " + kind.word +
                       WhyNoStartField(model, kind.field, draw.id));
  }
  const int end = chosen->end < 0 ? size : chosen->end;
  if (end > size) throw place.Refuse("it has only " + std::to_string(size) + " components");
  draw.begin = chosen->begin;
  draw.count = end - draw.begin;
  const auto word = std::ranges::find(kDistributions, words[2]);
  if (word == std::end(kDistributions)) {
    throw place.Refuse(
        NoSuch("distribution", words[2], {std::begin(kDistributions), std::end(kDistributions)}));
  }
  draw.kind = static_cast<Kind>(word - kDistributions);
  for (size_t i = 3; i < words.size(); ++i) draw.numbers.push_back(ToNumber(words[i], place));

  const size_t count = draw.count, given = draw.numbers.size();
  const size_t each = draw.kind == Kind::kAround ? 1 : 2;
  if (draw.kind == Kind::kChoice) {
    if (given % count != 0) {
      throw place.Refuse("each choice has " + std::to_string(count) + " numbers; there are " +
                         std::to_string(given));
    }
  } else if (given == each) {
    const std::vector<double> one = draw.numbers;
    for (size_t i = 1; i < count; ++i)
      draw.numbers.insert(draw.numbers.end(), one.begin(), one.end());
  } else if (given != each * count) {
    throw place.Refuse("expected " + std::to_string(each) + " numbers, or " +
                       std::to_string(each * count) + " for " + std::to_string(count) +
                       " components; there are " + std::to_string(given));
  }
  for (size_t i = 0; draw.kind == Kind::kUniform && i < draw.numbers.size(); i += 2) {
    if (draw.numbers[i] > draw.numbers[i + 1]) throw place.Refuse("LOW is above HIGH");
  }
  if (kind.field == StartField::kGeomSize) {
    CheckSizes(model, draw, place);
    changes_sizes_ = true;
  }
  changes_model_ = changes_model_ || kind.of_model;
  draws_.push_back(std::move(draw));
}

// A geom without extent would be an error of the engine, in an episode that nobody expects.
void Start::CheckSizes(const mjModel* model, const Draw& draw, const Place& place) {
  bool above = draw.kind != Kind::kNormal;
  for (size_t i = 0; i < draw.numbers.size(); ++i) {
    const int component = draw.begin + static_cast<int>(i) % draw.count;
    const double lowest = draw.kind == Kind::kAround
                              ? model->geom_size[3 * draw.id + component] - draw.numbers[i]
                              : draw.numbers[i];
    above = above && lowest > 0;
  }
  if (!above) {
    throw place.Refuse("sizes must stay above 0: draw them by uniform, around or choice of such");
  }
}

double Start::Value(const Draw& draw, uint32_t entry, int component, double base, Draws& draws,
                    int choice) const {
  const double* numbers = draw.numbers.data();
  const auto at = static_cast<uint32_t>(component);
  switch (draw.kind) {
    case Kind::kUniform: {
      const double low = numbers[2 * component], high = numbers[2 * component + 1];
      return low + (high - low) * draws.Uniform(entry, at);
    }
    case Kind::kNormal:
      return numbers[2 * component] + numbers[2 * component + 1] * draws.Normal(entry, at);
    case Kind::kAround:
      return base + numbers[component] * (2 * draws.Uniform(entry, at) - 1);
    case Kind::kChoice:
      break;
  }
  return numbers[choice * draw.count + component];
}

void Start::Apply(uint32_t seed, const mjModel* original, mjModel* model, mjData* data) const {
  if (changes_model_) CopyDrawn(original, model);
  if (key_ >= 0) {
    mj_resetDataKeyframe(model, data, key_);
  } else {
    mj_resetData(model, data);
  }
  Draws draws(seed, numpy_);
  for (size_t e = 0; e < draws_.size(); ++e) {
    const Draw& draw = draws_[e];
    const auto entry = static_cast<uint32_t>(e);
    const int values = static_cast<int>(draw.numbers.size()) / draw.count;
    const int choice = draw.kind == Kind::kChoice ? draws.Choice(entry, values) : 0;
    for (int i = 0; i < draw.count; ++i) {
      const int at = draw.begin + i;
      const double base = GetStartField(model, data, draw.field, draw.id, at);
      SetStartField(model, data, draw.field, draw.id, at,
                    Value(draw, entry, i, base, draws, choice));
    }
    if (draw.field == StartField::kGeomSize) UpdateGeomBounds(model, draw.id);
  }
  for (const Draw& draw : draws_) {
    if (draw.field == StartField::kJoint)
      NormaliseQuaternion(model, data, draw.id, draw.begin + draw.count);
  }
  // bounding volumes of whole bodies are not made anew
  if (changes_sizes_) model->opt.disableflags |= mjDSBL_MIDPHASE;
  for (int i = 0; i < settle_; ++i) mj_step(model, data);
  data->time = 0;
}

namespace {

// Calls visit(from, to, numbers) for each array that pictures and collisions show and that may be
// changed while a model is simulated. Kinds of which the two have not the same number are left out.
template <typename From, typename To, typename Visit>
void ForEachDrawn(From* from, To* to, Visit visit) {
  const auto all = [&](auto count, auto... rows) {
    if (from->*count != to->*count) return;
    (visit(from->*rows.first, to->*rows.first, rows.second * from->*count), ...);
  };
  using Numbers = std::pair<mjtNum * mjModel::*, int>;
  using Floats = std::pair<float * mjModel::*, int>;
  all(&mjModel::nbody, Numbers{&mjModel::body_pos, 3}, Numbers{&mjModel::body_quat, 4});
  all(&mjModel::ngeom, Floats{&mjModel::geom_rgba, 4}, Numbers{&mjModel::geom_size, 3},
      Numbers{&mjModel::geom_rbound, 1}, Numbers{&mjModel::geom_aabb, 6});
  all(&mjModel::nlight, Numbers{&mjModel::light_pos, 3}, Numbers{&mjModel::light_dir, 3},
      Floats{&mjModel::light_diffuse, 3}, Floats{&mjModel::light_ambient, 3},
      Floats{&mjModel::light_specular, 3});
  all(&mjModel::ncam, Numbers{&mjModel::cam_pos, 3}, Numbers{&mjModel::cam_quat, 4},
      Numbers{&mjModel::cam_fovy, 1});
  all(&mjModel::nmat, Floats{&mjModel::mat_rgba, 4}, Floats{&mjModel::mat_emission, 1},
      Floats{&mjModel::mat_specular, 1}, Floats{&mjModel::mat_shininess, 1},
      Floats{&mjModel::mat_reflectance, 1});
  all(&mjModel::nsite, Numbers{&mjModel::site_pos, 3}, Numbers{&mjModel::site_size, 3},
      Floats{&mjModel::site_rgba, 4});
}

}  // namespace

void Start::CopyDrawn(const mjModel* from, mjModel* to) {
  to->opt.disableflags = from->opt.disableflags;
  ForEachDrawn(from, to, [](const auto* source, auto* target, auto numbers) {
    std::copy_n(source, numbers, target);
  });
}

bool Start::DrawnAlike(const mjModel* a, const mjModel* b) {
  bool alike = true;
  ForEachDrawn(a, b, [&](const auto* one, const auto* other, auto numbers) {
    alike = alike && std::equal(one, one + numbers, other);
  });
  return alike;
}

}  // namespace mjp::app
