// The fleet page, alive. Without this module everything on it works by plain forms; see docs/reference/fleet.md.
//
// The server renders; this module asks for the part that changes, and puts in what differs. What is typed, the focus and the
// outputs stay. Text from a box is only ever set as text.

import { Page } from "./fleet/page.js";

const main = document.querySelector("[data-fleet]");
if (main) new Page(main);
