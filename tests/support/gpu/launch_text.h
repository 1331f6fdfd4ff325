#ifndef TESTS_SUPPORT_LAUNCH_TEXT_H_
#define TESTS_SUPPORT_LAUNCH_TEXT_H_

#include <cstdint>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "kernels/cuda/megakernel/megakernel.cuh"
#include "policy/cuda/layers.h"

// Launches and layers as text, one to a line: every argument by name, addresses as offsets in the
// arena that measured them. Two plans are the same where their texts are.

namespace mjp_test {

class LaunchText {
 public:
  template <typename Plan>
  explicit LaunchText(const std::vector<Plan>& plan) {
    for (const Plan& each : plan) Add(each);
  }
  std::string text() const { return out_.str(); }

 private:
  // What is not zero: a number, or where an address is in the arena.
  template <typename T>
  void Field(const char* name, T value) {
    if constexpr (std::is_pointer_v<T>) {
      if (value != nullptr) out_ << ' ' << name << '@' << reinterpret_cast<uintptr_t>(value);
    } else {
      if (value != T{}) out_ << ' ' << name << ' ' << +value;
    }
  }

  void Add(const mjp::Op& op) {
    std::visit([this](const auto& a) { Launch(a); }, op);
    out_ << '\n';
  }
  void Launch(const mjp::ConvArgs& a) {
    out_ << "conv";
    Field("batch", a.shape.batch), Field("in_h", a.shape.in_h), Field("in_w", a.shape.in_w);
    Field("in_c", a.shape.in_c), Field("first_c", a.shape.first_c), Field("out_h", a.shape.out_h);
    Field("out_w", a.shape.out_w), Field("out_c", a.shape.out_c);
    Field("kernel_h", a.shape.kernel_h), Field("kernel_w", a.shape.kernel_w);
    Field("stride", a.shape.stride), Field("pad_h", a.shape.pad_h), Field("pad_w", a.shape.pad_w);
    Field("upsample2x", a.shape.upsample2x), Field("phases", a.shape.phases);
    Field("x", a.x), Field("x2", a.x2), Field("weight", a.weight), Field("bias", a.bias);
    Field("residual", a.residual), Field("relu", a.relu), Field("y", a.y);
    Field("y_fp32", a.y_fp32);
  }
  void Launch(const mjp::GroupNormArgs& a) {
    out_ << "group_norm";
    Field("rows", a.rows), Field("positions", a.positions), Field("channels", a.channels);
    Field("groups", a.groups), Field("x", a.x), Field("weight", a.weight), Field("bias", a.bias);
    Field("activation", static_cast<int>(a.activation));
    Film(a.film);
    Field("residual", a.residual), Field("residual_first", a.residual_first), Field("y", a.y);
  }
  void Film(const mjp::FilmArgs& a) {
    if (a.step_table == nullptr) return;
    Field("step_table", a.step_table), Field("cond", a.cond), Field("row_step", a.row_step);
    Field("rows_per_env", a.rows_per_env), Field("width", a.width);
    Field("scale_offset", a.scale_offset), Field("bias_offset", a.bias_offset);
  }
  void Shape(const mjp::NormConvShape& s) {
    Field("rows", s.rows), Field("in_length", s.in_length), Field("out_length", s.out_length);
    Field("in_c", s.in_c), Field("out_c", s.out_c), Field("taps", s.taps);
    Field("stride", s.stride), Field("pad", s.pad), Field("phases", s.phases);
    Field("shortcut", s.shortcut);
  }
  // No U-Net has one.
  template <typename Other>
  void Launch(const Other&) {
    out_ << "?";
  }

  void Epilogue(const char* name, const mjp::megakernel::EpilogueTerms& s, int group_channels) {
    out_ << ' ' << name << " [";
    Field("bias", s.bias), Field("channels", s.channels), Field("norm_scale", s.norm_scale);
    Field("norm_shift", s.norm_shift), Field("group_channels", group_channels);
    Field("film_scale", s.film_scale + 1), Field("film_bias", s.film_shift + 1);
    Field("shortcut_bias", s.shortcut_bias);
    out_ << " ]";
  }
  void Box(const char* name, const mjp::megakernel::Mailbox& m) {
    out_ << ' ' << name;
    Field("offset", m.offset), Field("tile_values", m.tile_values), Field("uses", m.uses);
    Field("index", m.index);
  }
  void Add(const mjp::megakernel::Layer& l) {
    out_ << "layer";
    Shape(l.shape);
    // none where the layer was not planned
    Epilogue("epilogue", l.epilogue, l.group_channels_log2 > 0 ? 1 << l.group_channels_log2 : 0);
    Field("weight", l.weight), Field("source0", l.source[0]), Field("source1", l.source[1]);
    Field("set0", l.source_row_set_log2[0]), Field("set1", l.source_row_set_log2[1]);
    Field("source_channels", l.source_channels), Field("output", l.output);
    Field("output_set_log2", l.output_row_set_log2), Field("adds_residual", l.adds_residual);
    Field("cta_local", l.cta_local), Field("fence", l.fence);
    Box("mailbox", l.mailbox), Box("shortcut_mailbox", l.shortcut_mailbox);
    Field("k_slice", l.k_slice), Field("split_k_log2", l.split_k_log2);
    Field("m_tiles_log2", l.m_tiles_log2), Field("groups_log2", l.groups_log2);
    Field("rows_log2", l.rows_log2), Field("in_length_log2", l.in_length_log2);
    Field("out_length_log2", l.out_length_log2);
    Field("group_channels_log2", l.group_channels_log2), Field("halo", l.halo);
    Field("padded_length", l.padded_length);
    out_ << '\n';
  }

  std::ostringstream out_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_LAUNCH_TEXT_H_
