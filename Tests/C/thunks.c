/* SPDX-License-Identifier: Apache-2.0
 *
 * Thunks: each type of a described signature, as an argument, as the result and
 * as the default, wherever the context goes; and every description that is
 * wrong (G29).
 */
#include "thunks.h"

static cbr_registry registry;
static int mine;

static cbr_token add_function(cbr_function function) {
  cbr_token token = CBR_NONE;
  EXPECT(CBR_OK, CBR_REGISTER(registry, "function", function, &mine, NULL,
                              CBR_NONE, &token));
  return token;
}

/* ---------------------------------------------------------------- scalars -- */

/* Takes a value of a type and returns it, with the context in front, behind,
 * or asked for. A live thunk returns what it was given, a dead one the
 * default. */
#define SCALARS(type, name, kind_of_it, value, otherwise_of_it)               \
  static type first_##name(void *context, type it) {                          \
    CHECK(context == &mine);                                                  \
    return it;                                                                \
  }                                                                           \
  static type last_##name(type it, void *context) {                           \
    return first_##name(context, it);                                         \
  }                                                                           \
  static type none_##name(type it) {                                          \
    return first_##name(cbr_current_context(), it);                           \
  }                                                                           \
  static void try_##name(void) {                                              \
    const cbr_function functions[] = {(cbr_function)first_##name,             \
                                      (cbr_function)last_##name,              \
                                      (cbr_function)none_##name};             \
    const int32_t places[] = {CBR_CONTEXT_FIRST, CBR_CONTEXT_LAST,            \
                              CBR_CONTEXT_NONE};                              \
    for (int each = 0; each < 3; each++) {                                    \
      WITHIN("%s, place %d", #name, (int)places[each]);                       \
      const cbr_type it = SCALAR(kind_of_it);                                 \
      const type otherwise = (otherwise_of_it);                               \
      cbr_signature signature = signature_of(it, &it, 1, places[each]);       \
      signature.otherwise = &otherwise;                                       \
      cbr_token token = add_function(functions[each]);                        \
      cbr_thunk thunk = make_thunk(registry, token, &signature);              \
      type (*call)(type) = (type(*)(type))cbr_thunk_function(thunk);          \
      CHECK(call((value)) == (value));                                        \
      end_now(token);                                                         \
      CHECK(call((value)) == otherwise);                                      \
      end_now(thunk);                                                         \
      CHECK(call((value)) == otherwise);                                      \
      signature.otherwise = NULL;                                             \
      token = add_function(functions[each]);                                  \
      thunk = make_thunk(registry, token, &signature);                        \
      call = (type(*)(type))cbr_thunk_function(thunk);                        \
      end_now(thunk);                                                         \
      CHECK(call((value)) == 0);                                              \
      end_now(token);                                                         \
    }                                                                         \
  }

SCALARS(bool, bool_, CBR_TYPE_BOOL, true, true)
SCALARS(int8_t, int8, CBR_TYPE_INT8, INT8_MIN, -3)
SCALARS(uint8_t, uint8, CBR_TYPE_UINT8, UINT8_MAX, 200)
SCALARS(int16_t, int16, CBR_TYPE_INT16, INT16_MIN, -3)
SCALARS(uint16_t, uint16, CBR_TYPE_UINT16, UINT16_MAX, 60000)
SCALARS(int32_t, int32, CBR_TYPE_INT32, INT32_MIN, -3)
SCALARS(uint32_t, uint32, CBR_TYPE_UINT32, UINT32_MAX, 4000000000u)
SCALARS(int64_t, int64, CBR_TYPE_INT64, INT64_MIN, -3)
SCALARS(uint64_t, uint64, CBR_TYPE_UINT64, UINT64_MAX, 1ull << 63)
SCALARS(float, float_, CBR_TYPE_FLOAT, 0.1f, -0.7f)
SCALARS(double, double_, CBR_TYPE_DOUBLE, 0.1, -0.7)
SCALARS(long, long_, CBR_TYPE_LONG, -5L, 7L)
SCALARS(size_t, size, CBR_TYPE_SIZE, SIZE_MAX, 7u)
SCALARS(void *, pointer, CBR_TYPE_POINTER, (void *)&mine, (void *)&registry)

static void G29_everyScalar(void) {
  try_bool_();
  try_int8();
  try_uint8();
  try_int16();
  try_uint16();
  try_int32();
  try_uint32();
  try_int64();
  try_uint64();
  try_float_();
  try_double_();
  try_long_();
  try_size();
  try_pointer();
}

/* ------------------------------------------------------------- structures -- */

struct small {
  int32_t left, right;
};
struct mixed {
  float number;
  char letter;
  double other;
};
struct odd {
  uint8_t bytes[3];
};
struct large {
  int64_t numbers[3];
  struct mixed mixed;
};

static const cbr_type small_fields[] = {SCALAR(CBR_TYPE_INT32),
                                        SCALAR(CBR_TYPE_INT32)};
static const cbr_type mixed_fields[] = {SCALAR(CBR_TYPE_FLOAT),
                                        SCALAR(CBR_TYPE_INT8),
                                        SCALAR(CBR_TYPE_DOUBLE)};
static const cbr_type odd_fields[] = {SCALAR(CBR_TYPE_UINT8),
                                      SCALAR(CBR_TYPE_UINT8),
                                      SCALAR(CBR_TYPE_UINT8)};
static const cbr_type large_fields[] = {
    SCALAR(CBR_TYPE_INT64), SCALAR(CBR_TYPE_INT64), SCALAR(CBR_TYPE_INT64),
    STRUCT(mixed_fields)};

/* Takes a structure, and another argument, and returns the structure. */
#define STRUCTURES(type, value, otherwise_of_it)                            \
  static struct type echo_##type(double before, void *context,              \
                                 struct type it, int after) {               \
    CHECK(context == &mine && before == 0.5 && after == -7);                \
    return it;                                                              \
  }                                                                         \
  static void try_##type(void) {                                            \
    WITHIN("%s", #type);                                                    \
    const cbr_type arguments[] = {SCALAR(CBR_TYPE_DOUBLE),                  \
                                  STRUCT(type##_fields),                    \
                                  SCALAR(CBR_TYPE_INT32)};                  \
    static const struct type given = value, otherwise = otherwise_of_it;    \
    cbr_signature signature = signature_of(arguments[1], arguments, 3, 1);  \
    signature.otherwise = &otherwise;                                       \
    cbr_token token = add_function((cbr_function)echo_##type);              \
    cbr_thunk thunk = make_thunk(registry, token, &signature);              \
    struct type (*call)(double, struct type, int) =                         \
        (struct type(*)(double, struct type, int))cbr_thunk_function(thunk);\
    struct type result = call(0.5, given, -7);                              \
    CHECK(is_same_##type(&result, &given));                                 \
    end_now(thunk);                                                         \
    result = call(0.5, given, -7);                                          \
    CHECK(is_same_##type(&result, &otherwise));                             \
    end_now(token);                                                         \
  }

#define LIST(...) __VA_ARGS__

static bool is_same_small(const struct small *one, const struct small *other) {
  return one->left == other->left && one->right == other->right;
}

static bool is_same_mixed(const struct mixed *one, const struct mixed *other) {
  return one->number == other->number && one->letter == other->letter &&
         one->other == other->other;
}

static bool is_same_odd(const struct odd *one, const struct odd *other) {
  return memcmp(one->bytes, other->bytes, 3) == 0;
}

static bool is_same_large(const struct large *one, const struct large *other) {
  return memcmp(one->numbers, other->numbers, sizeof one->numbers) == 0 &&
         is_same_mixed(&one->mixed, &other->mixed);
}

STRUCTURES(small, LIST({1, -2}), LIST({-3, 4}))
STRUCTURES(mixed, LIST({0.25f, 'a', -1.5}), LIST({-0.25f, 'b', 2.5}))
STRUCTURES(odd, LIST({{1, 2, 255}}), LIST({{4, 5, 6}}))
STRUCTURES(large, LIST({{1, INT64_MIN, 3}, {0.5f, 'c', 4.5}}),
           LIST({{-1, -2, -3}, {1.5f, 'd', -4.5}}))

static void G29_structuresByValue(void) {
  try_small();
  try_mixed();
  try_odd();
  try_large();
}

struct long_half {
  int64_t key;
  double weight;
};
struct short_half {
  int32_t key, other;
  float weight;
};

static const cbr_type long_half_fields[] = {SCALAR(CBR_TYPE_INT64),
                                            SCALAR(CBR_TYPE_DOUBLE)};
static const cbr_type short_half_fields[] = {SCALAR(CBR_TYPE_INT32),
                                             SCALAR(CBR_TYPE_INT32),
                                             SCALAR(CBR_TYPE_FLOAT)};

/* A structure of which one half is an integer, in the last register that there
 * is for one, and the other half a number: what comes before it is untouched.
 * The context takes a register, too, where it is in front. */
#define HALVES(type)                                                          \
  static double no_##type(double scale, int a, int b, int c, int d, int e,    \
                          struct type it, double behind) {                    \
    CHECK(cbr_current_context() == &mine && a == 1 && b == 2 && c == 3);      \
    CHECK(d == 4 && e == 5 && it.key == -6 && it.weight == 7.5);              \
    CHECK(behind == 8.5);                                                     \
    return scale;                                                             \
  }                                                                           \
  static double first_##type(void *context, double scale, int a, int b, int c,\
                             int d, struct type it, double behind) {          \
    CHECK(context == cbr_current_context());                                  \
    return no_##type(scale, a, b, c, d, 5, it, behind);                       \
  }                                                                           \
  static void try_##type(bool has_context) {                                  \
    WITHIN("%s, context %d", #type, (int)has_context);                        \
    const cbr_type integer = SCALAR(CBR_TYPE_INT32);                          \
    const cbr_type number = SCALAR(CBR_TYPE_DOUBLE);                          \
    const cbr_type half = STRUCT(type##_fields);                              \
    const cbr_type four[] = {number,  integer, integer, integer,              \
                             integer, half,    number};                       \
    const cbr_type five[] = {number,  integer, integer, integer,              \
                             integer, integer, half,    number};              \
    cbr_signature signature =                                                 \
        has_context ? signature_of(number, four, 7, CBR_CONTEXT_FIRST)        \
                    : signature_of(number, five, 8, CBR_CONTEXT_NONE);        \
    cbr_token token =                                                         \
        add_function(has_context ? (cbr_function)first_##type                 \
                                 : (cbr_function)no_##type);                  \
    cbr_thunk thunk = make_thunk(registry, token, &signature);                \
    cbr_function function = cbr_thunk_function(thunk);                        \
    const struct type it = {.key = -6, .weight = 7.5};                        \
    double scale =                                                            \
        has_context                                                           \
            ? ((double (*)(double, int, int, int, int, struct type,           \
                           double))function)(2.5, 1, 2, 3, 4, it, 8.5)        \
            : ((double (*)(double, int, int, int, int, int, struct type,      \
                           double))function)(2.5, 1, 2, 3, 4, 5, it, 8.5);    \
    CHECK(scale == 2.5);                                                      \
    end_now(thunk);                                                           \
    end_now(token);                                                           \
  }

HALVES(long_half)
HALVES(short_half)

static void G29_halvesInRegistersOfBothKinds(void) {
  for (int has_context = 0; has_context < 2; has_context++) {
    try_long_half(has_context);
    try_short_half(has_context);
  }
}

/* Sixteen integers and sixteen numbers, and the context in their midst. */
#define FOUR(what, from) \
  what(from), what(from + 1), what(from + 2), what(from + 3)
#define SIXTEEN(what) FOUR(what, 0), FOUR(what, 4), FOUR(what, 8), FOUR(what, 12)
typedef double many(int, int, int, int, int, int, int, int, int, int, int, int,
                    int, int, int, int, double, double, double, double, double,
                    double, double, double, double, double, double, double,
                    double, double, double, double);

static double add_up(int a, int b, int c, int d, int e, int f, int g, int h,
                     int i, int j, int k, int l, int m, int n, int o, int p,
                     void *context, double q, double r, double s, double t,
                     double u, double v, double w, double x, double y,
                     double z, double aa, double bb, double cc, double dd,
                     double ee, double ff) {
  CHECK(context == &mine);
  const int ints[] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};
  const double doubles[] = {q, r, s, t, u, v, w, x, y, z, aa, bb, cc, dd, ee,
                            ff};
  double sum = 0;
  for (int each = 0; each < 16; each++)
    sum += (each + 1) * (ints[each] - doubles[each]);
  return sum;
}

static void G29_thirtyTwoArguments(void) {
  cbr_type arguments[33];
  for (int each = 0; each < 33; each++)
    arguments[each].kind = each < 16 ? CBR_TYPE_INT32 : CBR_TYPE_DOUBLE;
  cbr_signature signature = signature_of(
      (cbr_type)SCALAR(CBR_TYPE_DOUBLE), arguments, 32, 16);
  cbr_token token = add_function((cbr_function)add_up);
  cbr_thunk thunk = make_thunk(registry, token, &signature);
  many *call = (many *)cbr_thunk_function(thunk);
#define NUMBER(from) (from) * 3
#define HALF(from) (from) * 0.5
  double expected = 0;
  for (int each = 0; each < 16; each++) expected += (each + 1) * each * 2.5;
  CHECK(call(SIXTEEN(NUMBER), SIXTEEN(HALF)) == expected);
  end_now(thunk);
  CHECK(call(SIXTEEN(NUMBER), SIXTEEN(HALF)) == 0);
  end_now(token);
}

/* The same shape again has its addresses beside the first one's. */
static void G29_theSignatureIsCopied(void) {
  cbr_type argument = SCALAR(CBR_TYPE_INT32);
  int32_t otherwise = -9;
  cbr_signature signature =
      signature_of(argument, &argument, 1, CBR_CONTEXT_FIRST);
  signature.otherwise = &otherwise;
  cbr_token token = add_function((cbr_function)first_int32);
  cbr_thunk thunk = make_thunk(registry, token, &signature);
  int32_t (*call)(int32_t) = (int32_t(*)(int32_t))cbr_thunk_function(thunk);
  memset(&argument, 0xff, sizeof argument);
  memset(&signature, 0xff, sizeof signature);
  otherwise = 0;
  EQUAL(42, call(42));
  end_now(token);
  EQUAL(-9, call(42));
  end_now(thunk);
}

/* ------------------------------------------------------ wrong signatures -- */

static const cbr_type an_int = SCALAR(CBR_TYPE_INT32);
static const cbr_type void_field[] = {SCALAR(CBR_TYPE_VOID)};
static const cbr_type long_field[] = {SCALAR(CBR_TYPE_INT8),
                                      SCALAR(CBR_TYPE_LONG_DOUBLE)};
static cbr_type nested[10], many_fields[255];

static const struct wrong {
  cbr_type result, argument;
  cbr_status status;
  const char *sentence;
} wrong[] = {
    {SCALAR(CBR_TYPE_LONG_DOUBLE), SCALAR(CBR_TYPE_INT32), CBR_E_UNSUPPORTED,
     "the result is a long double; pass a pointer to it"},
    {SCALAR(CBR_TYPE_COMPLEX), SCALAR(CBR_TYPE_INT32), CBR_E_UNSUPPORTED,
     "the result is a complex number; pass a pointer to it"},
    {SCALAR(CBR_TYPE_VOID), SCALAR(CBR_TYPE_LONG_DOUBLE), CBR_E_UNSUPPORTED,
     "argument 2 is a long double; pass a pointer to it"},
    {SCALAR(CBR_TYPE_VOID), SCALAR(CBR_TYPE_COMPLEX), CBR_E_UNSUPPORTED,
     "argument 2 is a complex number; pass a pointer to it"},
    {SCALAR(CBR_TYPE_VOID), SCALAR(CBR_TYPE_VARIADIC), CBR_E_UNSUPPORTED,
     "argument 2 is variadic; describe what is passed there"},
    {SCALAR(CBR_TYPE_VOID), STRUCT(long_field), CBR_E_UNSUPPORTED,
     "a field of argument 2 is a long double; pass a pointer to it"},
    {SCALAR(CBR_TYPE_VOID), {CBR_TYPE_STRUCT, 1, &nested[0]},
     CBR_E_UNSUPPORTED,
     "a field of argument 2 is nested too deeply; pass a pointer to it"},
    {SCALAR(CBR_TYPE_VOID), STRUCT(many_fields), CBR_E_UNSUPPORTED,
     "argument 2 has too many fields; pass a pointer to it"},
    {SCALAR(CBR_TYPE_VOID), SCALAR(CBR_TYPE_VOID), CBR_E_INVALID,
     "argument 2 is void"},
    {SCALAR(CBR_TYPE_VOID), STRUCT(void_field), CBR_E_INVALID,
     "a field of argument 2 is void"},
    {SCALAR(CBR_TYPE_VOID), {CBR_TYPE_STRUCT, 0, void_field}, CBR_E_INVALID,
     "argument 2 is a structure without fields"},
    {{CBR_TYPE_STRUCT, 1, NULL}, SCALAR(CBR_TYPE_INT32), CBR_E_INVALID,
     "the result is a structure without fields"},
    {SCALAR(14), SCALAR(CBR_TYPE_INT32), CBR_E_INVALID,
     "the result is of kind 14, which there is not"},
    {SCALAR(CBR_TYPE_VOID), SCALAR(UINT32_MAX), CBR_E_INVALID,
     "argument 2 is of kind 4294967295, which there is not"},
};

static void expect_wrong(cbr_token token, const cbr_signature *signature,
                         cbr_status status, const char *sentence) {
  cbr_thunk thunk = 1;
  EXPECT(status, cbr_thunk_create(registry, token, signature, &thunk));
  if (!CHECK(strcmp(sentence, cbr_last_error()) == 0))
    fprintf(stderr, "  instead of %s\n", sentence);
  CHECK(thunk == CBR_NONE);
}

static void G29_whatIsWrongIsNamed(void) {
  for (int each = 0; each < 9; each++)
    nested[each] = (cbr_type){CBR_TYPE_STRUCT, 1, &nested[each + 1]};
  nested[9] = an_int;
  for (int each = 0; each < 255; each++) many_fields[each] = an_int;
  cbr_token token = add_function((cbr_function)first_int32);
  for (size_t each = 0; each < COUNT(wrong); each++) {
    WITHIN("signature %d", (int)each);
    const cbr_type arguments[] = {SCALAR(CBR_TYPE_INT32),
                                  wrong[each].argument};
    cbr_signature signature =
        signature_of(wrong[each].result, arguments, 2, CBR_CONTEXT_FIRST);
    expect_wrong(token, &signature, wrong[each].status, wrong[each].sentence);
  }
  WITHIN("the rest");
  cbr_type arguments[33];
  for (int each = 0; each < 33; each++) arguments[each] = an_int;
  cbr_signature signature = signature_of(an_int, arguments, 33, 0);
  expect_wrong(token, &signature, CBR_E_UNSUPPORTED,
               "argument 33 is one too many");
  signature = signature_of(an_int, NULL, 1, 0);
  expect_wrong(token, &signature, CBR_E_INVALID,
               "arguments is NULL and count is not 0");
  for (int32_t place = -4; place < 5; place++) {
    if (place >= CBR_CONTEXT_NONE && place <= 2) continue;
    signature = signature_of(an_int, arguments, 2, place);
    expect_wrong(
        token, &signature, CBR_E_INVALID,
        "context is neither a place of its own nor one of 0 to 2");
  }
  signature = signature_of(an_int, &an_int, 1, CBR_CONTEXT_FIRST);
  signature.reserved = 1;
  expect_wrong(token, &signature, CBR_E_INVALID, "reserved is not 0");
  signature.reserved = 0;
  signature.size -= 8;
  expect_wrong(token, &signature, CBR_E_INVALID,
               "signature->size is not one that this library knows");
  expect_wrong(token, NULL, CBR_E_INVALID, "signature is NULL");
  signature.size += 8;
  EXPECT(CBR_E_INVALID, cbr_thunk_create(registry, token, &signature, NULL));
  signature.label = "a\nlabel";
  cbr_thunk thunk;
  EXPECT(CBR_E_INVALID, cbr_thunk_create(registry, token, &signature, &thunk));
  CHECK(strstr(cbr_last_error(), "label") != NULL);
  end_now(token);
  EQUAL(0, statistics_of(registry).live_thunks);
}

/* A token of another kind of call is refused at once (G10). */
static void G10_onlyFunctionsHaveThunks(void) {
  static const cbr_method method = {"method", CBR_METHOD_REQUIRED, 0};
  static const cbr_interface interface = {sizeof interface, "thunks", 1, 1,
                                          &method};
  const cbr_function table[] = {(cbr_function)first_int32};
  cbr_signature signature =
      signature_of(an_int, &an_int, 1, CBR_CONTEXT_FIRST);
  cbr_registration what = CBR_REGISTRATION_INIT;
  what.interface = &interface;
  what.methods = table;
  cbr_token token;
  cbr_thunk thunk;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  EXPECT(CBR_E_INTERFACE,
         cbr_thunk_create(registry, token, &signature, &thunk));
  end_now(token);

  what.interface = NULL;
  what.methods = NULL;
  what.function = table[0];
  what.context = &mine;
  what.type_tag = 7;
  EXPECT(CBR_OK, cbr_register(registry, &what, &token));
  EXPECT(CBR_E_INTERFACE,
         cbr_thunk_create(registry, token, &signature, &thunk));
  signature.type_tag = 8;
  EXPECT(CBR_E_INTERFACE,
         cbr_thunk_create(registry, token, &signature, &thunk));
  signature.type_tag = 7;
  thunk = make_thunk(registry, token, &signature);
  EQUAL(3, ((int32_t(*)(int32_t))cbr_thunk_function(thunk))(3));
  end_now(token);
  end_now(thunk);

  cbr_signal signal;
  what.type_tag = signature.type_tag = 0;
  EXPECT(CBR_OK, cbr_signal_create(registry, "signal", CBR_NONE, &signal));
  EXPECT(CBR_OK, cbr_connect(signal, &what, NULL, &token));
  EXPECT(CBR_E_INTERFACE,
         cbr_thunk_create(registry, token, &signature, &thunk));
  end_now(signal);
}

int main(void) {
  registry = open_registry("thunks", test_level());
  TEST(G29_everyScalar);
  TEST(G29_structuresByValue);
  TEST(G29_halvesInRegistersOfBothKinds);
  TEST(G29_thirtyTwoArguments);
  TEST(G29_theSignatureIsCopied);
  TEST(G29_whatIsWrongIsNamed);
  TEST(G10_onlyFunctionsHaveThunks);
  close_registry(registry);
  return finish();
}
