// Time that this program had a processor: for work of the host on a machine that others use, too.
#pragma once

namespace tilewright::cli {

/// Of the calling thread, since it began; other threads and programs do not count.
double processor_seconds();

}  // namespace tilewright::cli
