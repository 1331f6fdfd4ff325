// The smallest host: loads a folder of plugin libraries as MuJoCo's simulate does, opens a model
// and steps it.   host PLUGIN_FOLDER MODEL.xml SECONDS

#include <mujoco/mujoco.h>
#include <stdio.h>
#include <stdlib.h>

static void PrintLibrary(const char* file, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    printf("%s: %s\n", file, mjp_getPluginAtSlot(i)->name);
  }
}

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  mj_loadAllPluginLibraries(argv[1], PrintLibrary);
  char reason[2000] = "";
  mjModel* model = mj_loadXML(argv[2], NULL, reason, sizeof(reason));
  if (!model) {
    printf("cannot load: %s\n", reason);
    return 2;
  }
  mjData* data = mj_makeData(model);
  const double end = atof(argv[3]);
  while (data->time < end) mj_step(model, data);
  printf("time %.2f", data->time);
  for (int i = 0; i < model->nu; ++i) printf(" %.17g", data->ctrl[i]);
  printf("\n");
  mj_deleteData(data);
  mj_deleteModel(model);
  return 0;
}
