// Runs last.
import { openForPrint, starts } from "./page.js";

openForPrint();
for (const start of starts) start();
