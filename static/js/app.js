/* The one module a page loads: starts each part once. */
import * as announce from "./announce.js";
import * as copy from "./copy.js";
import * as decide from "./decide.js";
import * as dialogs from "./dialogs.js";
import * as forms from "./forms.js";
import * as inboxLive from "./inbox-live.js";
import * as inboxRows from "./inbox-rows.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as refresh from "./refresh.js";
import * as swaps from "./swaps.js";
import * as time from "./time.js";
import * as trace from "./trace.js";
import * as together from "./together.js";
import * as tree from "./tree.js";

for (const part of [announce, time, copy, decide, dialogs, forms, swaps, keys, trace, together, tree, live, inboxLive, inboxRows, refresh]) part.start();
