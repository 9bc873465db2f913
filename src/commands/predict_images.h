// The images in answers of predict(): from data URIs (data/images/image.h) to PNG files.
#pragma once

#include <string>

namespace redco {

// `answer`, a JSON object, with each member that is a PNG data URI replaced by the path of a file that holds
// the image: FOLDER/NAME.png, or FOLDER/NAME-MEMBER.png from the second image on. The files are on the disk
// when it returns. Characters that a file name may not have become _. Other answers are returned unchanged.
std::string save_images(const std::string& answer, const std::string& name, const std::string& folder);

}  // namespace redco
