import { stopSharedService } from './service.ts';

export default stopSharedService;
