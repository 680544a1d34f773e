/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers with one user data, which changes meanwhile; the parser's owner dies
 * at the third element. Then the parser is reset, and asked to pass itself.
 */
#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "subject.h"

static XML_Parser parser;
static int first, second, texts;

static void start(void *data, const char *name, const char **attributes) {
  (void)name;
  (void)attributes;
  int calls = subject_called();
  if (calls == 1) printf("first %d\n", data == &first);
  if (calls == 1) XML_SetUserData(parser, &second);
  if (calls == 2)
    printf("second %d %d\n", data == &second,
           XML_GetUserData(parser) == &second);
  if (calls == 3) subject_died(parser);
}

static void text(void *data, const char *bytes, int length) {
  (void)bytes;
  (void)length;
  (void)data;
  texts++;
}

static void itself(void *data, const char *bytes, int length) {
  (void)bytes;
  (void)length;
  printf("itself %d\n", data == parser);
}

/* Parses an entity by a parser of its own, which has the same handlers. */
static int outside(XML_Parser of, const char *context, const char *base,
                   const char *system, const char *public) {
  (void)base;
  (void)system;
  (void)public;
  XML_Parser inner = XML_ExternalEntityParserCreate(of, context, NULL);
  int result = XML_Parse(inner, "inner", 5, 1);
  XML_ParserFree(inner);
  return result;
}

static void inner_text(void *data, const char *bytes, int length) {
  printf("%.*s %d\n", length, bytes, data == &first);
}

static void parse_outside(void) {
  const char *document =
      "<!DOCTYPE a [<!ENTITY e SYSTEM 'e'>]><a>before&e;after</a>";
  XML_ParserReset(parser, NULL);
  XML_SetUserData(parser, &first);
  XML_SetCharacterDataHandler(parser, inner_text);
  XML_SetExternalEntityRefHandler(parser, outside);
  printf("outside %d\n",
         XML_Parse(parser, document, (int)strlen(document), 1));
}

static void parse(const char *document) {
  printf("parsed %d\n",
         XML_Parse(parser, document, (int)strlen(document), 1));
}

int main(void) {
  parser = XML_ParserCreate(NULL);
  XML_SetUserData(parser, &first);
  XML_SetElementHandler(parser, start, NULL);
  XML_SetCharacterDataHandler(parser, text);
  parse("<a><b/>x<b/>y<b/>z</a>");
  printf("reset %d\n", XML_ParserReset(parser, NULL));
  XML_SetUserData(parser, &first);
  parse("<a>quiet</a>");
  parse_outside();
  XML_ParserReset(parser, NULL);
  XML_UseParserAsHandlerArg(parser);
  XML_SetCharacterDataHandler(parser, itself);
  parse("<a>x</a>");
  XML_ParserFree(parser);
  printf("texts %d\n", texts > 0);
  return subject_tell();
}
