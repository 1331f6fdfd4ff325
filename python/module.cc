// mjpolicy._core: policy/c_api.h for Python, by the limited API of 3.11, so that one library serves
// every later Python. It knows buffers, not NumPy: what it gets is neither copied nor kept. Shapes
// are policy.py's to check; here the number of elements is, against the policy's own sizes.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <cstdint>
#include <cstring>

#include "policy/c_api.h"

namespace {

constexpr const char* kCapsule = "mjpolicy.policy";

PyObject* policy_error = nullptr;

PyObject* FailWithLibraryText() {
  PyErr_SetString(policy_error, mjp_last_error());
  return nullptr;
}

mjp_policy* PolicyOf(PyObject* capsule) {
  return static_cast<mjp_policy*>(PyCapsule_GetPointer(capsule, kCapsule));
}

void Free(PyObject* capsule) { mjp_free(PolicyOf(capsule)); }

// A C-contiguous buffer of one element type, or nothing where the argument is None.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (view_.obj) PyBuffer_Release(&view_);
  }

  // False with an exception set. `format` is that of the struct module, `elements` what it must
  // hold.
  bool Take(PyObject* object, const char* name, char format, Py_ssize_t elements, bool writable) {
    if (object == Py_None) return true;
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, &view_, flags) != 0) return false;
    const char* text = view_.format ? view_.format : "B";
    if (text[0] == '=' || text[0] == '<' || text[0] == '@') ++text;
    // numpy.uint64 is L or Q, as the platform has it
    const char given = text[0] == 'L' && view_.itemsize == 8 ? 'Q' : text[0];
    if (given != format || text[1] != '\0') {
      PyErr_Format(PyExc_TypeError, "%s has elements of type '%s', expected '%c'", name, text,
                   format);
      return false;
    }
    if (view_.len / view_.itemsize != elements) {
      PyErr_Format(PyExc_ValueError, "%s has %zd elements, expected %zd", name,
                   view_.len / view_.itemsize, elements);
      return false;
    }
    return true;
  }

  template <typename T>
  T* data() const {
    return static_cast<T*>(view_.buf);
  }

 private:
  Py_buffer view_{};
};

PyObject* AbiVersion(PyObject*, PyObject*) {
  return Py_BuildValue("(ii)", mjp_abi_version(), MJP_ABI_VERSION);
}

PyObject* Load(PyObject*, PyObject* arguments) {
  const char* directory;
  mjp_options options = MJP_OPTIONS;
  if (!PyArg_ParseTuple(arguments, "szzziiiz:load", &directory, &options.backend,
                        &options.precision, &options.sampler, &options.steps, &options.batch,
                        &options.threads, &options.instruction)) {
    return nullptr;
  }
  mjp_policy* policy;
  Py_BEGIN_ALLOW_THREADS;
  policy = mjp_load(directory, &options);
  Py_END_ALLOW_THREADS;
  if (!policy) return FailWithLibraryText();
  PyObject* capsule = PyCapsule_New(policy, kCapsule, Free);
  if (!capsule) mjp_free(policy);
  return capsule;
}

PyObject* Describe(PyObject*, PyObject* capsule) {
  const mjp_policy* policy = PolicyOf(capsule);
  if (!policy) return nullptr;
  mjp_shape shape = MJP_SHAPE;
  if (mjp_describe(policy, &shape) != 0) return FailWithLibraryText();
  return Py_BuildValue("(iiiiiiiiiiiii)", shape.observation_steps, shape.state_dim,
                       shape.environment_dim, shape.cameras, shape.picture_height,
                       shape.picture_width, shape.horizon, shape.action_dim, shape.first_action,
                       shape.action_steps, shape.decision_steps, shape.noise_decisions,
                       shape.features);
}

// (name, dim, height, width, normalization, low, high); low and high are bytes of floats or None
PyObject* FeatureAt(PyObject*, PyObject* arguments) {
  PyObject* capsule;
  int index;
  if (!PyArg_ParseTuple(arguments, "Oi:feature", &capsule, &index)) return nullptr;
  const mjp_policy* policy = PolicyOf(capsule);
  if (!policy) return nullptr;
  mjp_feature feature = MJP_FEATURE;
  if (mjp_feature_at(policy, index, &feature) != 0) return FailWithLibraryText();
  const auto bytes = static_cast<Py_ssize_t>(feature.dim * sizeof(float));
  return Py_BuildValue("(siiisy#y#)", feature.name, feature.dim, feature.height, feature.width,
                       feature.normalization, reinterpret_cast<const char*>(feature.low), bytes,
                       reinterpret_cast<const char*>(feature.high), bytes);
}

PyObject* Infer(PyObject*, PyObject* arguments) {
  PyObject *capsule, *pictures, *state, *environment, *seeds, *decisions, *actions;
  mjp_observation observation = MJP_OBSERVATION;
  if (!PyArg_ParseTuple(arguments, "OiOOOOOO:infer", &capsule, &observation.count, &pictures,
                        &state, &environment, &seeds, &decisions, &actions)) {
    return nullptr;
  }
  mjp_policy* policy = PolicyOf(capsule);
  if (!policy) return nullptr;
  mjp_shape shape = MJP_SHAPE;
  if (mjp_describe(policy, &shape) != 0) return FailWithLibraryText();
  const Py_ssize_t n = observation.count, steps = n * shape.observation_steps;
  Buffer picture_buffer, state_buffer, environment_buffer, seed_buffer, decision_buffer, out;
  if (!picture_buffer.Take(pictures, "pictures", 'B',
                           steps * static_cast<Py_ssize_t>(shape.picture_bytes), false) ||
      !state_buffer.Take(state, "state", 'f', steps * shape.state_dim, false) ||
      !environment_buffer.Take(environment, "environment", 'f', steps * shape.environment_dim,
                               false) ||
      !seed_buffer.Take(seeds, "seed", 'Q', n, false) ||
      !decision_buffer.Take(decisions, "decision", 'I', n, false) ||
      !out.Take(actions, "actions", 'f', n * shape.horizon * shape.action_dim, true)) {
    return nullptr;
  }
  observation.pictures = picture_buffer.data<uint8_t>();
  observation.state = state_buffer.data<float>();
  observation.environment = environment_buffer.data<float>();
  observation.seeds = seed_buffer.data<uint64_t>();
  observation.decisions = decision_buffer.data<uint32_t>();
  const auto capacity = static_cast<size_t>(n * shape.horizon * shape.action_dim);
  int code;
  Py_BEGIN_ALLOW_THREADS;
  code = mjp_infer(policy, &observation, out.data<float>(), capacity);
  Py_END_ALLOW_THREADS;
  if (code != 0) return FailWithLibraryText();
  Py_RETURN_NONE;
}

PyObject* Follow(PyObject*, PyObject* arguments) {
  PyObject *capsule, *before, *ages, *chunks;
  int count;
  if (!PyArg_ParseTuple(arguments, "OiOOO:follow", &capsule, &count, &before, &ages, &chunks)) {
    return nullptr;
  }
  const mjp_policy* policy = PolicyOf(capsule);
  if (!policy) return nullptr;
  mjp_shape shape = MJP_SHAPE;
  if (mjp_describe(policy, &shape) != 0) return FailWithLibraryText();
  const Py_ssize_t size = Py_ssize_t{count} * shape.horizon * shape.action_dim;
  Buffer before_buffer, age_buffer, chunk_buffer;
  if (!before_buffer.Take(before, "before", 'f', size, false) ||
      !age_buffer.Take(ages, "ages", 'i', count, true) ||
      !chunk_buffer.Take(chunks, "chunks", 'f', size, true)) {
    return nullptr;
  }
  if (mjp_follow(policy, count, before_buffer.data<float>(), age_buffer.data<int>(),
                 chunk_buffer.data<float>()) != 0) {
    return FailWithLibraryText();
  }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"abi_version", AbiVersion, METH_NOARGS, "(of the library, of this module)"},
    {"load", Load, METH_VARARGS,
     "load(directory, backend, precision, sampler, steps, batch, threads, instruction)"},
    {"describe", Describe, METH_O, "The numbers of mjp_shape, without sizes in bytes."},
    {"feature", FeatureAt, METH_VARARGS,
     "feature(policy, index): (name, dim, height, width, normalization, low, high)"},
    {"infer", Infer, METH_VARARGS,
     "infer(policy, count, pictures, state, environment, seeds, decisions, actions)"},
    {"follow", Follow, METH_VARARGS, "follow(policy, count, before, ages, chunks)"},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "mjpolicy._core",
                          "The C API of mjpolicy.",
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__core() {
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  policy_error = PyErr_NewExceptionWithDoc("mjpolicy.PolicyError",
                                           "What the library refused, in its own words.",
                                           PyExc_RuntimeError, nullptr);
  if (!policy_error || PyModule_AddObjectRef(module, "PolicyError", policy_error) != 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
