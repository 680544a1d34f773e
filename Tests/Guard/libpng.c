/* SPDX-License-Identifier: Apache-2.0
 *
 * An image is written for somebody who dies at the first bytes; what is no
 * image is read, and the handler of errors jumps.
 */
#include <png.h>
#include <stdio.h>
#include <string.h>

#include "subject.h"

static int wrongs;

static void put(png_structp png, png_bytep bytes, size_t size) {
  (void)bytes;
  *(size_t *)png_get_io_ptr(png) += size;
  if (subject_called() == 1) subject_died(png);
}

static void flush(png_structp png) { (void)png; }

static void get_nothing(png_structp png, png_bytep bytes, size_t size) {
  (void)png;
  memset(bytes, 'x', size);
}

static void wrong(png_structp png, png_const_charp message) {
  (void)message;
  ++*(int *)png_get_error_ptr(png);
  png_longjmp(png, 1);
}

static void write_image(void) {
  png_byte row[8] = {0};
  size_t written = 0;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &wrongs, wrong, NULL);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &written, put, flush);
  png_set_IHDR(png, info, 8, 1, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  png_write_row(png, row);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  printf("written %d\n", written > 0);
}

static void read_image(void) {
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &wrongs, wrong, NULL);
  png_infop info = png_create_info_struct(png);
  png_set_read_fn(png, NULL, get_nothing);
  if (!setjmp(png_jmpbuf(png))) png_read_info(png, info);
  png_destroy_read_struct(&png, &info, NULL);
  printf("wrong %d\n", wrongs);
}

static int warnings;

static void warn(png_structp png, png_const_charp message) {
  (void)message;
  warnings += png_get_error_ptr(png) == &warnings;
}

/* What is called before there is an object: for another version's caller. */
static void make_wrongly(void) {
  png_structp png = png_create_read_struct("0.0", &warnings, wrong, warn);
  printf("made %d, warned %d\n", png != NULL, warnings);
}

int main(void) {
  make_wrongly();
  for (int each = 0; each < 3; each++) read_image();
  write_image();
  return subject_tell();
}
