import { stopTestStack } from './stack.ts';

export default stopTestStack;
