// node --import preload.mjs: lets the conformance suite run on Node 20 too.
import * as fs from 'node:fs';
import { register } from 'node:module';

if (!('globSync' in fs)) register('./hooks.mjs', import.meta.url);
