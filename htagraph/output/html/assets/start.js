// Runs last.
import { openForPrint, starts } from "./page.js";

openForPrint();
requestAnimationFrame(() => setTimeout(() => starts.forEach((start) => start()))); // behind the first frame
