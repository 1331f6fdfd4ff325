#include "viewer/drawing/changes.h"

#include <cstdio>
#include <cstring>

namespace mjp::app {
namespace {

uint64_t Mix(uint64_t look, uint64_t word) {
  look = (look ^ word) * 0x9e3779b97f4a7c15u;
  return look ^ (look >> 29);
}

template <typename T>
uint64_t LookOfVector(const ImVector<T>& values, uint64_t seed) {
  return LookOf(values.Data, sizeof(T) * static_cast<size_t>(values.Size), seed);
}

uint64_t LookOfList(const ImDrawList& list, uint64_t look) {
  look = LookOfVector(list.VtxBuffer, look);
  look = LookOfVector(list.IdxBuffer, look);
  for (const ImDrawCmd& command : list.CmdBuffer) {
    look = LookOf(&command.ClipRect, sizeof(command.ClipRect), look);
    look = Mix(look, reinterpret_cast<uintptr_t>(command.TextureId));
    look = Mix(look, uint64_t{command.ElemCount} << 32 | command.IdxOffset);
  }
  return look;
}

}  // namespace

uint64_t LookOf(const void* bytes, size_t size, uint64_t seed) {
  const char* from = static_cast<const char*>(bytes);
  uint64_t look = Mix(seed, size);
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), from += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, from, sizeof(word));
    look = Mix(look, word);
  }
  uint64_t rest = 0;
  if (size > 0) std::memcpy(&rest, from, size);
  return Mix(look, rest);
}

int Changes::PartOf(const ImDrawList& list) {
  const char* owner = list._OwnerName ? list._OwnerName : "";
  int dock = -1;
  if (std::strcmp(owner, "##Background") == 0) return 0;
  if (std::sscanf(owner, "dock %d", &dock) == 1 || std::sscanf(owner, "tabs %d", &dock) == 1) {
    return dock + 1;
  }
  return -1;
}

std::vector<bool> Changes::Find(const ImDrawData& data, size_t docks, uint64_t scene) {
  std::vector<uint64_t> looks(docks + 1);
  looks[0] = scene;
  bool covered = false;
  for (int i = 0; i < data.CmdListsCount; ++i) {
    const ImDrawList& list = *data.CmdLists[i];
    const int part = PartOf(list);
    covered |= part < 0;
    if (part >= 0) looks[part] = LookOfList(list, looks[part]);
  }
  std::vector<bool> changed(docks + 1, covered || covered_ || looks.size() != looks_.size());
  for (size_t i = 0; i < looks.size() && looks.size() == looks_.size(); ++i) {
    if (looks[i] != looks_[i]) changed[i] = true;
  }
  looks_ = looks;
  covered_ = covered;
  return changed;
}

}  // namespace mjp::app
