/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of thunks. libffi turns the arguments of a C call into a list
 * and back; its closures for Go take what they work on from a register, so the
 * code that is called is a few instructions that set it, the same for every
 * thunk. That makes three arrays of equal length, which lie side by side:
 *
 *   handles   of the thunks, 0 where there is none, or none any more
 *   closures  what libffi takes from the register: where it goes on, with which
 *             signature, and which function of ours it calls
 *   code      sets the register to the closure of the same index, which is at
 *             the same distance everywhere, and goes where that says
 *
 * Code is the same for all blocks, and closures are for all blocks of one
 * signature: their pages are mapped again, not copied. Only handles take memory
 * of their own, eight bytes, which the system gets back when a late caller need
 * not be told apart any more. So an address costs next to nothing, and is never
 * used for another thunk.
 *
 * Code is written to a file in memory and mapped from there, readable and
 * executable; where that is refused, it is written to memory that then stops
 * being writable. No page is ever both.
 *
 * Shared variables
 *   handles   stored (releasing) by who makes a thunk, before anybody has its
 *             address; loaded (acquiring) by who calls it
 *   all else  is written under the monitor of thunks, before an address that
 *             needs it is given out
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ffi.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "CPlatform.h"
#include "internal.h"

enum {
  COUNT = CBR_THUNKS_PER_BLOCK,
  STRIDE = 32,
  HANDLE_BYTES = COUNT * 8,
  CLOSURE_BYTES = COUNT * STRIDE,
  CODE_BYTES = COUNT * STRIDE,
  BLOCK_BYTES = HANDLE_BYTES + CLOSURE_BYTES + CODE_BYTES
};

static bool (*begin_call)(uint64_t thunk, struct cbr_thunk_call *call);
static void (*end_call)(uint64_t thunk, struct cbr_thunk_call *call);

void cbr_thunks_prepare(bool (*begin)(uint64_t, struct cbr_thunk_call *),
                        void (*end)(uint64_t, struct cbr_thunk_call *)) {
  begin_call = begin;
  end_call = end;
}

#if FFI_GO_CLOSURES && (defined(__x86_64__) || defined(__aarch64__))

/* ------------------------------------------------------------ signatures -- */

/* The context, and the second half of an argument that is split. */
enum { INNER = CBR_THUNK_ARGUMENTS + 2 };

struct cbr_shape {
  ffi_cif outer; /* first: libffi gives it back */
  ffi_cif inner; /* with the context */
  uint32_t count; /* of the outer arguments */
  int32_t context_place; /* among the inner ones; -1: nowhere; or
                           CBR_CONTEXT_LISTED */
  int32_t split; /* the inner argument that is passed as two; -1: none */
  uint8_t *otherwise; /* the default result */
  char *closures; /* of its first block, or NULL */
  uint32_t filled; /* of them */
  size_t code_count;
  const uint8_t *codes;
  ffi_type *outer_types[CBR_THUNK_ARGUMENTS];
  ffi_type *inner_types[INNER];
};

/* Where the next structure's description goes, and what it is made of. */
struct builder {
  const uint8_t *codes;
  ffi_type *structures;
  ffi_type **elements;
};

static ffi_type *const scalars[] = {
    [CBR_CODE_VOID] = &ffi_type_void,      [CBR_CODE_BOOL] = &ffi_type_uint8,
    [CBR_CODE_INT8] = &ffi_type_sint8,     [CBR_CODE_UINT8] = &ffi_type_uint8,
    [CBR_CODE_INT16] = &ffi_type_sint16,   [CBR_CODE_UINT16] = &ffi_type_uint16,
    [CBR_CODE_INT32] = &ffi_type_sint32,   [CBR_CODE_UINT32] = &ffi_type_uint32,
    [CBR_CODE_INT64] = &ffi_type_sint64,   [CBR_CODE_UINT64] = &ffi_type_uint64,
    [CBR_CODE_FLOAT] = &ffi_type_float,    [CBR_CODE_DOUBLE] = &ffi_type_double,
    [CBR_CODE_POINTER] = &ffi_type_pointer};

/* The next type of a list that has been found to be right. */
static ffi_type *build(struct builder *from) {
  uint8_t code = *from->codes++;
  if (code != CBR_CODE_STRUCT) return scalars[code];
  uint8_t count = *from->codes++;
  ffi_type *made = from->structures++;
  made->type = FFI_TYPE_STRUCT;
  made->elements = from->elements;
  from->elements += count + 1; /* with the NULL at the end */
  for (uint8_t each = 0; each < count; each++)
    made->elements[each] = build(from);
  return made;
}

#if defined(__x86_64__)

/* Notes which halves of 16 bytes have anything but a float in them, of a type
 * that lies at this place or at the next one that it may be at. Returns where
 * it ends. */
static size_t find_integers(const ffi_type *type, size_t at,
                            bool is_integer[2]) {
  size_t begin = (at + type->alignment - 1) / type->alignment * type->alignment;
  size_t end = begin;
  if (type->type == FFI_TYPE_STRUCT)
    for (ffi_type **each = type->elements; *each; each++)
      end = find_integers(*each, end, is_integer);
  else if (type->type != FFI_TYPE_FLOAT && type->type != FFI_TYPE_DOUBLE)
    is_integer[begin / 8] = true;
  return begin + type->size;
}

/* libffi before 3.4.7 copies a whole structure to where the integer registers
 * are kept, and those of floats lie behind the last of these: a structure of an
 * integer and a float, whose integer is in the sixth register, overwrites the
 * first argument that is a float (libffi's issue 574). Its two halves are
 * passed in the same registers as two arguments would be, so it is split.
 *   inner  prepared, so that its types have their sizes
 * Returns which argument that is; -1: none. */
static int32_t place_of_split(const ffi_cif *inner) {
  enum { INTEGERS = 6, FLOATS = 8 };
  bool is_in_memory = inner->rtype->type == FFI_TYPE_STRUCT &&
                      inner->rtype->size > 16;
  uint32_t integers = is_in_memory ? 1 : 0; /* where the result goes */
  uint32_t floats = 0;
  for (uint32_t each = 0; each < inner->nargs; each++) {
    const ffi_type *type = inner->arg_types[each];
    bool is_integer[2] = {false, false};
    if (type->size > 16) continue;
    (void)find_integers(type, 0, is_integer);
    uint32_t halves = type->size > 8 ? 2 : 1;
    uint32_t own = (uint32_t)is_integer[0] + (halves == 2 && is_integer[1]);
    if (integers + own > INTEGERS || floats + halves - own > FLOATS) continue;
    if (halves == 2 && is_integer[0] && !is_integer[1] &&
        integers == INTEGERS - 1)
      return (int32_t)each;
    integers += own;
    floats += halves - own;
  }
  return -1;
}

#else

static int32_t place_of_split(const ffi_cif *inner) {
  (void)inner;
  return -1;
}

#endif

/* Passes an inner argument as its two halves. */
static bool split(struct cbr_shape *shape, ffi_type *result) {
  ffi_type **at = shape->inner_types + shape->split;
  uint32_t behind = shape->inner.nargs - (uint32_t)shape->split - 1;
  bool is_short = (*at)->size < 16;
  memmove(at + 2, at + 1, behind * sizeof *at);
  at[0] = &ffi_type_uint64;
  at[1] = is_short ? &ffi_type_float : &ffi_type_double;
  return ffi_prep_cif(&shape->inner, FFI_DEFAULT_ABI, shape->inner.nargs + 1,
                      result, shape->inner_types) == FFI_OK;
}

static bool prepare(struct cbr_shape *shape, ffi_type *result) {
  uint32_t place = 0;
  for (uint32_t each = 0; each < shape->count; each++) {
    if ((int32_t)place == shape->context_place)
      shape->inner_types[place++] = &ffi_type_pointer;
    shape->inner_types[place++] = shape->outer_types[each];
  }
  if ((int32_t)place == shape->context_place)
    shape->inner_types[place++] = &ffi_type_pointer;
  if (ffi_prep_cif(&shape->outer, FFI_DEFAULT_ABI, shape->count, result,
                   shape->outer_types) != FFI_OK ||
      ffi_prep_cif(&shape->inner, FFI_DEFAULT_ABI, place, result,
                   shape->inner_types) != FFI_OK)
    return false;
  shape->split = place_of_split(&shape->inner);
  return shape->split < 0 || split(shape, result);
}

struct cbr_shape *cbr_shape_create(const uint8_t *codes, size_t code_count,
                                   uint32_t count, int32_t context_place,
                                   const void *otherwise) {
  /* Each code is a structure, or an element of one, at most. */
  size_t structures = code_count * sizeof(ffi_type);
  size_t elements = 2 * code_count * sizeof(ffi_type *);
  struct cbr_shape *shape =
      cbr_allocate(sizeof *shape + structures + elements + code_count, 16);
  if (!shape) return NULL;
  char *rest = (char *)(shape + 1);
  uint8_t *own = (uint8_t *)rest + structures + elements;
  memcpy(own, codes, code_count);
  *shape = (struct cbr_shape){.count = count, .context_place = context_place,
                              .codes = own, .code_count = code_count};
  struct builder from = {own, (ffi_type *)rest,
                         (ffi_type **)(rest + structures)};
  ffi_type *result = build(&from);
  for (uint32_t each = 0; each < count; each++)
    shape->outer_types[each] = build(&from);
  if (prepare(shape, result))
    shape->otherwise = cbr_allocate(result->size, 16);
  if (!shape->otherwise) {
    cbr_release(shape);
    return NULL;
  }
  if (otherwise && result != &ffi_type_void)
    memcpy(shape->otherwise, otherwise, result->size);
  return shape;
}

void cbr_shape_destroy(struct cbr_shape *shape) {
  cbr_release(shape->otherwise);
  cbr_release(shape);
}

bool cbr_shape_is_same(const struct cbr_shape *one,
                       const struct cbr_shape *other) {
  return one->code_count == other->code_count &&
         one->context_place == other->context_place &&
         one->count == other->count &&
         memcmp(one->codes, other->codes, one->code_count) == 0 &&
         memcmp(one->otherwise, other->otherwise, one->outer.rtype->size) == 0;
}

/* ----------------------------------------------------------------- calls -- */

struct closure {
  ffi_go_closure go;
  uint64_t index;
};
_Static_assert(sizeof(struct closure) == STRIDE, "the stride of code");

static uint64_t *handles_of(const struct closure *closure) {
  return (uint64_t *)((char *)(closure - closure->index) - HANDLE_BYTES);
}

static void answer_default(const struct cbr_shape *shape, void *result) {
  if (shape->outer.rtype != &ffi_type_void)
    memcpy(result, shape->otherwise, shape->outer.rtype->size);
}

/* Every call of every thunk. */
static void arrive(ffi_cif *outer, void *result, void **arguments,
                   void *closure) {
  struct cbr_shape *shape = (struct cbr_shape *)outer;
  const struct closure *own = closure;
  uint64_t thunk =
      __atomic_load_n(handles_of(own) + own->index, __ATOMIC_ACQUIRE);
  struct cbr_thunk_call call;
  if (!begin_call(thunk, &call)) return answer_default(shape, result);
  void *given[INNER];
  int32_t place = shape->context_place;
  if (place == CBR_CONTEXT_LISTED) {
    ((cbr_listed_function)call.function)(call.context, arguments, result);
    return end_call(thunk, &call);
  }
  uint32_t before = place < 0 ? shape->count : (uint32_t)place;
  memcpy(given, arguments, before * sizeof *given);
  if (place >= 0) {
    given[before] = &call.context;
    memcpy(given + before + 1, arguments + before,
           (shape->count - before) * sizeof *given);
  }
  if (shape->split >= 0) {
    void **at = given + shape->split;
    uint32_t behind = shape->inner.nargs - (uint32_t)shape->split - 2;
    memmove(at + 2, at + 1, behind * sizeof *at);
    at[1] = (char *)at[0] + 8;
  }
  ffi_call(&shape->inner, FFI_FN(call.function), result, given);
  end_call(thunk, &call);
}

/* ------------------------------------------------------------------ code -- */

/* Loads what is so far behind itself into the register of libffi's closures for
 * Go, and jumps to where that points. Each begins with the mark of a place that
 * may be jumped to. */
static void write_code(unsigned char code[STRIDE]) {
#if defined(__x86_64__)
  /* endbr64; lea -(CLOSURE_BYTES + 11)(%rip), %r10; jmp *(%r10) */
  static const unsigned char stub[STRIDE] = {
      0xf3, 0x0f, 0x1e, 0xfa, 0x4c, 0x8d, 0x15, 0, 0, 0, 0,
      0x41, 0xff, 0x22, 0xcc, 0xcc};
  int32_t distance = -(CLOSURE_BYTES + 11);
  memcpy(code, stub, STRIDE);
  memcpy(code + 7, &distance, sizeof distance);
#else
  /* bti c; adr x18, -(CLOSURE_BYTES + 4); ldr x17, [x18]; br x17 */
  uint32_t distance = (uint32_t)-(CLOSURE_BYTES + 4);
  uint32_t stub[STRIDE / 4] = {
      0xd503245f,
      0x10000012 | (distance & 3) << 29 | (distance >> 2 & 0x7ffff) << 5,
      0xf9400251, 0xd61f0220};
  memcpy(code, stub, STRIDE);
#endif
}

static void fill_with_code(char *memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at += STRIDE)
    write_code((unsigned char *)memory + at);
}

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

/* A file in memory, which may be executed; -1: there is none. */
static int open_memory(void) {
  int file = memfd_create("cbr-thunks", MFD_CLOEXEC | MFD_EXEC);
  /* Before Linux 6.3 each may be. */
  if (file < 0 && errno == EINVAL)
    file = memfd_create("cbr-thunks", MFD_CLOEXEC);
  return file;
}

static bool map_file_of_code(void *at) {
  char page[4096];
  fill_with_code(page, sizeof page);
  int file = open_memory();
  if (file < 0) return false;
  bool is_good = true;
  for (size_t done = 0; is_good && done < CODE_BYTES; done += sizeof page)
    is_good = write(file, page, sizeof page) == sizeof page;
  is_good = is_good &&
            mmap(at, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED,
                 file, 0) != MAP_FAILED;
  close(file);
  return is_good;
}

static bool map_memory_of_code(void *at) {
  if (mmap(at, CODE_BYTES, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  fill_with_code(at, CODE_BYTES);
  return mprotect(at, CODE_BYTES, PROT_READ | PROT_EXEC) == 0;
}

/* Maps pages once more that are mapped somewhere. */
static bool map_again(void *from, void *at, size_t bytes) {
  return from && mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at;
}

static char *known_code;

static bool map_code(char *at) {
  if (map_again(known_code, at, CODE_BYTES)) return true;
  if (!map_file_of_code(at) && !map_memory_of_code(at)) return false;
  __builtin___clear_cache(at, at + CODE_BYTES);
  known_code = at;
  return true;
}

/* ---------------------------------------------------------------- blocks -- */

/* Writes closures up to a count, which the code of earlier ones may be using. */
static bool fill(struct cbr_shape *shape, char *closures, uint32_t from,
                 uint32_t to) {
  char *at = closures + (size_t)from * STRIDE;
  size_t bytes = (size_t)(to - from) * STRIDE;
  if (mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  for (uint32_t index = from; index < to; index++) {
    struct closure *closure = (struct closure *)closures + index;
    ffi_prep_go_closure(&closure->go, &shape->outer, arrive);
    closure->index = index;
  }
  return mprotect(at, bytes, PROT_READ) == 0;
}

static bool map_closures(struct cbr_shape *shape, char *at) {
  if (map_again(shape->closures, at, CLOSURE_BYTES)) return true;
  if (mmap(at, CLOSURE_BYTES, PROT_READ,
           MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  /* Where pages cannot be mapped again, the new ones are those of from now. */
  if (!fill(shape, at, 0, shape->filled)) return false;
  shape->closures = at;
  return true;
}

void *cbr_thunk_block_map(struct cbr_shape *shape, bool *is_refused) {
  if (cbr_allocation_fails()) return NULL;
  char *block = mmap(NULL, BLOCK_BYTES, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) return NULL;
  if (mprotect(block, HANDLE_BYTES, PROT_READ | PROT_WRITE) == 0 &&
      map_code(block + HANDLE_BYTES + CLOSURE_BYTES) &&
      map_closures(shape, block + HANDLE_BYTES))
    return block;
  *is_refused = errno == EACCES || errno == EPERM;
  munmap(block, BLOCK_BYTES);
  return NULL;
}

/* What is mapped again later must not be unmapped. */
void cbr_thunk_block_unmap(struct cbr_shape *shape, void *block) {
  char *closures = (char *)block + HANDLE_BYTES;
  if (shape->closures == closures) shape->closures = NULL;
  if (known_code == closures + CLOSURE_BYTES) known_code = NULL;
  munmap(block, BLOCK_BYTES);
}

bool cbr_thunk_fill(struct cbr_shape *shape, uint32_t count) {
  if (count <= shape->filled) return true;
  if (!fill(shape, shape->closures, shape->filled, count)) return false;
  shape->filled = count;
  return true;
}

uint32_t cbr_thunk_group(void) {
  long per_page = sysconf(_SC_PAGESIZE) / 8;
  return per_page > 512 ? (uint32_t)per_page : 512;
}

void *cbr_thunk_address(void *block, uint32_t index) {
  return (char *)block + HANDLE_BYTES + CLOSURE_BYTES + (size_t)index * STRIDE;
}

void cbr_thunk_set(void *block, uint32_t index, uint64_t handle) {
  __atomic_store_n((uint64_t *)block + index, handle, __ATOMIC_RELEASE);
}

void cbr_thunk_forget(void *block, uint32_t first, uint32_t count) {
  /* Private memory of no file: it is of zeros when it is read again. */
  madvise((uint64_t *)block + first, count * sizeof(uint64_t), MADV_DONTNEED);
}

bool cbr_thunks_exist(void) { return true; }

#else

/* Nothing else is called then. */
bool cbr_thunks_exist(void) { return false; }

struct cbr_shape *cbr_shape_create(const uint8_t *codes, size_t code_count,
                                   uint32_t count, int32_t context_place,
                                   const void *otherwise) {
  (void)codes, (void)code_count, (void)count, (void)context_place;
  (void)otherwise;
  return NULL;
}

void cbr_shape_destroy(struct cbr_shape *shape) { (void)shape; }

bool cbr_shape_is_same(const struct cbr_shape *one,
                       const struct cbr_shape *other) {
  return one == other;
}

void *cbr_thunk_block_map(struct cbr_shape *shape, bool *is_refused) {
  (void)shape;
  *is_refused = true;
  return NULL;
}

void cbr_thunk_block_unmap(struct cbr_shape *shape, void *block) {
  (void)shape, (void)block;
}

bool cbr_thunk_fill(struct cbr_shape *shape, uint32_t count) {
  (void)shape, (void)count;
  return false;
}

uint32_t cbr_thunk_group(void) { return CBR_THUNKS_PER_BLOCK; }

void *cbr_thunk_address(void *block, uint32_t index) {
  (void)block, (void)index;
  return NULL;
}

void cbr_thunk_set(void *block, uint32_t index, uint64_t handle) {
  (void)block, (void)index, (void)handle;
}

void cbr_thunk_forget(void *block, uint32_t first, uint32_t count) {
  (void)block, (void)first, (void)count;
}

#endif
