#ifndef TASKS_RECORDING_STB_WRITER_H_
#define TASKS_RECORDING_STB_WRITER_H_

// stb_image_write, private to the file that includes this, writing to memory alone.
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#endif  // TASKS_RECORDING_STB_WRITER_H_
