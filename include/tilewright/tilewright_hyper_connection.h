/* The C interface is one header now; this one remains for programs that include it. */
#include "tilewright/tilewright.h"
